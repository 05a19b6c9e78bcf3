#pragma once
// state.json of a checkpoint: everything that is no tensor, and the digests of the files beside it.
//
// {"crc32": "0badcafe",      of all that follows this first line
//  "version": 2, "step": 100, ..., "values": {"hooks/NAME": ...}, "files": {"model.safetensors": {"bytes": 123, "crc32": "..."}, ...}}
//
// Version 1 had "hooks", "parts", "train" and "course" in the place of "values", and the last evaluation, the wall time and the reason of a
// stop inside of "course"; it is still read.

#include <map>
#include <string>

#include "checkpoint/file_check.h"
#include "checkpoint/files/durable_file.h"
#include "checkpoint/left_out.h"
#include "checkpoint/state.h"

namespace kf {

inline constexpr const char* kModelFile = "model.safetensors";
inline constexpr const char* kOptimizerFile = "optimizer.safetensors";
inline constexpr const char* kModelIndex = "model.index.json";  // in their place where more than one rank wrote: piece_index.h
inline constexpr const char* kOptimizerIndex = "optimizer.index.json";
inline constexpr const char* kStateFile = "state.json";
inline constexpr const char* kJobFile = "job.toml";

struct StateFile {
  CheckpointState state;  // without job_toml, which is a file of its own
  std::string cpu_rng;    // bytes of LibTorch's default CPU generator
  std::map<std::string, std::int64_t> optimizer_integers;
  std::map<std::string, double> optimizer_reals;
  std::map<std::string, FileDigest> files;
  LeftOut left_out;
};

std::string to_text(const StateFile& content);

/// A table of files, as it stands in state.json, and back; the latter throws Code::checkpoint naming `path`.
config::Node to_node(const std::map<std::string, FileDigest>& files);
std::map<std::string, FileDigest> digests_from(const config::Node& node, const fs::path& path);

/// Throws Code::checkpoint naming the file: cut short, changed, of a newer version, incomplete.
StateFile read_state_file(const fs::path& checkpoint);

/// state.json as `read_state_file` has it, and job.toml with it. Reads these two files alone. Throws Code::checkpoint.
StateFile read_state(const fs::path& checkpoint);

/// Why the checkpoint cannot be used, after `check` has looked at its files; "" where it can.
std::string checkpoint_fault(const fs::path& checkpoint, const FileCheck& check = check_here);

}  // namespace kf
