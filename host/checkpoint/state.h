#pragma once
// What a checkpoint says of its run, without tensors.

#include <cstdint>
#include <string>

#include "checkpoint/values.h"
#include "config/tree/node.h"
#include "metrics/run_state.h"

namespace kf {

/// Everything that a checkpoint holds besides the tensors of model and optimizer.
struct CheckpointState {
  RunState run;
  bool finished = false;  // the run had reached its end
  std::string data_fingerprint;
  config::Table values;        // what the parts of the run keep: values.h
  config::Node kernels;        // which kernels the run computes with, so that a restart takes the same; may be null
  config::Node job;            // table of every key and its value, to compare a later job with
  std::string folder;          // the working folder, where relative paths of `job` start; "" where it was not saved
  config::Node versions;       // of the program and of LibTorch that wrote it; null where none were saved
  config::Node mesh;           // how many ranks it had along each axis; null likewise
  config::Node code;           // digests of the script's files, for the same; null where none was saved
  std::int64_t max_steps = 0;  // of the run, as the schedule knows it; 0 where it was not saved
  std::string job_toml;        // resolved job, loads back bit for bit
};

}  // namespace kf
