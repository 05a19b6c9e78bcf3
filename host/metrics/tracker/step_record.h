#pragma once
// Records of bytes that wait for a disk, as the state of a sink in checkpoints.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "config/tree/node.h"

namespace kf {

/// What a tracker writes of one step.
struct StepRecord {
  std::int64_t step = 0;
  std::string bytes;
};

/// Of all of them.
std::size_t bytes_of(const std::deque<StepRecord>& records);

/// [[step, bytes], ...]; null where nothing waits.
config::Node to_state(const std::deque<StepRecord>& waiting);
/// Back. Throws Code::checkpoint for what is no such list; `path` is the file's, for the message.
std::deque<StepRecord> records_of(const config::Node& state, const std::string& path);

}  // namespace kf
