#pragma once
// state.json of a checkpoint: everything that is no tensor, and the digests of the files beside it.
//
// {"crc32": "0badcafe",      of all that follows this first line
//  "version": 1, "step": 100, ..., "files": {"model.safetensors": {"bytes": 123, "crc32": "..."}, ...}}

#include <map>
#include <string>

#include "checkpoint/files/durable_file.h"
#include "checkpoint/left_out.h"
#include "checkpoint/manager.h"

namespace kf {

inline constexpr const char* kModelFile = "model.safetensors";
inline constexpr const char* kOptimizerFile = "optimizer.safetensors";
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

/// Throws Code::checkpoint naming the file: cut short, changed, of a newer version, incomplete.
StateFile read_state_file(const fs::path& checkpoint);

/// Throws Code::checkpoint saying which file of `checkpoint` is missing or damaged; reads every byte.
void verify_files(const fs::path& checkpoint, const StateFile& content);

}  // namespace kf
