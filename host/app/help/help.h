#pragma once
// What `kf-host --help` prints, and which help a command line asks for. The launcher answers: help needs no torch.

#include <string>
#include <vector>

namespace kf {

inline constexpr const char* kHelp = R"(kf-host trains language models, configured by TOML, scripted by Lua.

usage: kf-host [train] FILE [--section.key=value ...] [-- ARGS]

  FILE             a job (.toml), a script (.lua), or a run's folder to go on
  --section.key=v  a setting: --optimizer.lr=1e-3, --data.datasets[0].weight=0.7
  --dry-run        checks all, trains nothing; --nproc N: N processes together
  -- ARGS          strings for the script (kf.args)

  kf-host new NAME            a folder to start from; doctor: of this machine
  kf-host config check FILE   a job's problems; also: show, explain, keys, new
  kf-host plan FILE --world N cost of a layout; profile FILE: where time goes
  kf-host runs [DIR]          how runs are; plot, compare, tail, report, serve
  kf-host attach RUN          Lua in a live run; reload; reproduce, bundle RUN
  kf-host generate CKPT       text from a checkpoint; eval CKPT: its loss
  kf-host checkpoint list R   what was saved; also: info, verify, diff, average
  kf-host export CKPT DIR     for transformers, PEFT, llama.cpp (FILE.gguf)
  kf-host data info PATH      what data hold; tokenizer encode TEXT: its ids
  kf-host sweep show DIR      trials of a sweep; also: best, plot, resume
  kf-host lua [FILE|-e|-i]    Lua as in scripts; test SPEC.lua
  kf-host COMMAND --help      of one; also adapter, registry, replay, completion

exit status: 0 done; 75 stopped by a signal, start it again; 2 settings,
             3 script, 4 communication, 5 data, 6 checkpoint, 7 machine, 1 other
)";

/// The help that the words behind "kf-host" ask for: `--help`, `help COMMAND`, `COMMAND --help`. "" where they ask for none, and for the
/// help of a script, whose parts only the program finds.
std::string help_asked(const std::vector<std::string>& words);

/// Every command that has a page of help, in the order of their table.
std::vector<std::string> command_names();

/// The page of a command, folded to 80 columns; "" where there is no such command.
std::string command_page(const std::string& command);

}  // namespace kf
