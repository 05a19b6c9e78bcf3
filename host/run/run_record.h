#pragma once
// runs/<name>/run.json and code/: what a run was made of and started with, so that its folder can be understood, read and continued alone.
//
// {"id": "20261128-2147-5f3a91c2", "name": "toy", "tags": ["first"], "job": "examples/toy/job.toml",
//  "script": "code/lua/train.lua", "arguments": ["small"],          ...of a script, with kf.args
//  "modules": {"parts.wave": "code/lua/parts/wave.lua"},            ...what it requires, and reads by dofile ("file PATH")
//  "tokenizer": "tokenizer/tokenizer.json",                         ...of a path
//  "chat_template": "chat_template/chat.jinja",                     ...of a file
//  "source": "source",                                              config.json and more of the Hugging Face folder that the model is of
//  "starts": [{"time": "2026-11-28T21:47:03Z", "command": "kf-host examples/toy/job.toml", "folder": "/home/me", "version": "0.1.0",
//              "commit": "97b084e", "torch": "2.11.0", "job_git": {"commit": "1f0c...", "dirty": false}, "host": "box",
//              "system": "Linux 6.1 x86_64", "processor": "...", "instructions": "AVX2", "cores": 2, "memory": 8e9, "threads": 2,
//              "device": "cpu", "ranks": 1, "call": 1, "data": "9ab2...", "pid": 4711, "step": 0, "products": {...},
//              "end": "2026-11-28T22:01:44Z", "status": "complete", "steps": 80}]}
//
// A start without an end was killed. "commit" is the program's, "job_git" the state of the repository in which the job lies, "call" which
// kf.run of the script it was, "data" the digest of data.fingerprint (data/documents/data_record.h), "products" what computes matrix
// products. jobs/N.toml is the resolved job of start N and those before it, where a later start had another one; job.toml is the last
// one's.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bindings/script/script.h"
#include "config/load/load.h"
#include "config/tree/node.h"
#include "core/fs.h"

namespace kf {

/// UTC, "2026-11-28T21:47:03Z".
std::string utc_now();

/// What this process adds to the record of a run.
struct RunStart {
  const config::Loaded& loaded;
  fs::path job;                        // file of the job or script
  const std::vector<CodeFile>& code;   // of the script, itself first; empty for TOML
  std::vector<std::string> arguments;  // kf.args
  std::string name;
  std::string device;
  std::int64_t step = 0;       // from which it goes on
  bool fresh = true;           // nothing was saved before: it gets an id of its own
  std::string copied_id = {};  // of the run whose copies in checkpoint.mirror it goes on from; for a folder that has lost its id
  bool from_folder = false;    // the run's own folder is what it was started from: it holds all that there is to copy
  std::int64_t ranks = 1;
  std::int64_t call = 0;  // which kf.run of the script it is, from 1; 0: none
  std::string data = {};  // what checkpoints keep of the data
};

class RunRecord {
 public:
  /// Writes code/, tokenizer/ and run.json below `dir`. What an earlier start has left in code/ and is not the same stays beside it.
  RunRecord(fs::path dir, const RunStart& start);

  const std::string& id() const { return id_; }
  /// Adds what is known only now to this start.
  void add(const std::string& key, config::Node value);
  /// How the run ended; `error` is its message, "" for none. Never throws: a full disk must not hide what went wrong before.
  void end(const std::string& status, std::int64_t steps, const std::string& error = {}) noexcept;

 private:
  void copy_parts(const RunStart& start);
  void write();

  fs::path dir_;
  std::optional<std::pair<std::uint64_t, std::uint64_t>> folder_;  // file_id of dir_: nothing is written into another of the name
  std::string id_;
  config::Table table_;
};

/// Copies the code from which hooks were taken behind a step into reloads/step_N below `dir`.
void put_reloaded(const fs::path& dir, std::int64_t step, const std::vector<CodeFile>& code);

/// {"version": ..., "commit": ..., "torch": ...}: what this program is made of.
config::Node program_versions();

/// Whether the run that lies there was begun, or went on, under the process with this token (`watch_token`); "" is none's.
bool began_under(const fs::path& run_dir, const std::string& watch);

/// Keeps the job.toml of an earlier start of the run in `dir` where it is another one than `job`, which is about to take its place.
void keep_earlier_job(const fs::path& dir, const std::string& job);
/// The resolved job of start number `start` (from 1) of a run that has `starts` of them.
fs::path recorded_job(const fs::path& run_dir, std::size_t start, std::size_t starts);

/// The script of a run, as its folder holds it.
struct RecordedScript {
  fs::path path;  // empty: the run had none, or its folder does not say
  std::vector<std::string> arguments;
  std::map<std::string, fs::path> copies = {};  // of what it requires and reads, by CodeFile::asked
};

/// Whether `word` is the folder of a run, which has a run.json and a job.toml.
bool is_run_folder(const fs::path& word);
/// The run folder that `source` is or lies in (runs/X, runs/X/checkpoints, runs/X/checkpoints/step_N, runs/X/job.toml): it has a run.json.
std::optional<fs::path> run_folder_of(const fs::path& source);
RecordedScript recorded_script(const fs::path& run_dir);
/// Id of the run, "" where its folder does not say.
std::string recorded_id(const fs::path& run_dir);
/// Name of the run, "" where its folder does not say.
std::string recorded_name(const fs::path& run_dir);
/// The Hugging Face folder from which a job takes its model (model.preset, checkpoint.init_from, or what the run of that came from); empty
/// without one.
fs::path model_source(const config::Config& config);
/// The copy that the folder holds of what that says beside the weights; empty without one.
fs::path recorded_source(const fs::path& run_dir);
/// The copy that the folder holds of what a key of [data] names ("tokenizer_path", "chat_template"); empty without one.
fs::path recorded_copy(const fs::path& run_dir, const std::string& key);

}  // namespace kf
