#pragma once
// One function a subcommand, one file each. Arguments come without the subcommand's name; the exit status is returned.

#include <string>
#include <vector>

namespace kf {

using Arguments = std::vector<std::string>;

/// `kf-host [train] FILE [--section.key=value ...] [-- ARGS]`: a .toml job or a .lua script.
int train_command(const Arguments& args);
/// `kf-host generate CHECKPOINT --prompt TEXT [...]`
int generate_command(const Arguments& args);
/// `kf-host data info PATH`
int data_command(const Arguments& args);
/// `kf-host eval CHECKPOINT [--data PATH | --choices FILE] [...]`
int eval_command(const Arguments& args);
/// `kf-host sweep show|best|resume|plot DIR`
int sweep_command(const Arguments& args);
/// `kf-host tokenizer encode|decode|info|train ...`
int tokenizer_command(const Arguments& args);
/// `kf-host adapter export CHECKPOINT FOLDER [--merged]`
int adapter_command(const Arguments& args);
/// `kf-host checkpoint list|info|verify|diff|average|convert|merge-lora|prune ...`
int checkpoint_command(const Arguments& args);
/// `kf-host replay RUN/incidents/step_N [--section.key=value ...]`
int replay_command(const Arguments& args);
/// `kf-host runs [DIR] [--state STATE] [--last N] [--json]`
int runs_command(const Arguments& args);
/// `kf-host plot RUN... [--metric NAME] [...]`
int plot_command(const Arguments& args);
/// `kf-host compare RUN RUN... [--all]`
int compare_command(const Arguments& args);
/// `kf-host tail RUN [--rows N]`
int tail_command(const Arguments& args);
/// `kf-host reproduce RUN [--steps N] [--dir FOLDER] [--section.key=value ...]`
int reproduce_command(const Arguments& args);
/// `kf-host bundle RUN [FILE]`
int bundle_command(const Arguments& args);
/// `kf-host report RUN... [-o FILE.html]`
int report_command(const Arguments& args);
/// `kf-host serve [DIR] [--port N]`
int serve_command(const Arguments& args);
/// `kf-host export CHECKPOINT FOLDER [--dtype T] [--family F] [--weights saved|average|raw] [--max-shard-size S] [--adapter]`, or
/// `... FILE.gguf [--dtype T]`
int export_command(const Arguments& args);
/// `kf-host plan JOB --world N [--gpu NAME|FILE] [--search] [--json]`: memory, traffic and time of a layout, without any device.
int plan_command(const Arguments& args);
/// `kf-host profile FILE [--steps N]`: trains a few steps and says where time and memory go.
int profile_command(const Arguments& args);
/// `kf-host new NAME`: a folder with a job to start from.
int new_command(const Arguments& args);
/// `kf-host registry [KIND]`
int registry_command(const Arguments& args);
/// `kf-host test FILE_spec.lua... [--filter TEXT] [-- ARGS]`: tests written in Lua.
int test_command(const Arguments& args);
/// `kf-host lua [FILE | -e CHUNK | -i] [-- ARGS]`: the runtime of scripts as an interpreter.
int lua_command(const Arguments& args);
/// `kf-host attach RUN [-e CHUNK]`: Lua said to a run while it trains.
int attach_command(const Arguments& args);
/// `kf-host reload RUN`: the run reads its script's hooks again.
int reload_command(const Arguments& args);
/// `kf-host completion bash`
int completion_command(const Arguments& args);
/// `kf-host --version`
int version_command(const Arguments& args);

}  // namespace kf
