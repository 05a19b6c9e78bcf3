#pragma once
// The counters of a run. The checkpoint owns them; everything else (learning rate, data position) follows from them.

#include <cstdint>

namespace kf {

struct RunState {
  std::int64_t step = 0;     // completed updates (skipped steps count: the data moved on)
  std::int64_t tokens = 0;   // positions seen: batch * seq_len * accumulation * ranks
  std::int64_t skipped = 0;  // of the steps: those without an update
};

}  // namespace kf
