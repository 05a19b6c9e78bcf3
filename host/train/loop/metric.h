#pragma once
// Numbers of one's own in the rows of metrics.jsonl (metrics.extra).

#include <cstdint>
#include <memory>
#include <string>

#include "train/loop/hook.h"

namespace kf {

class Metric {
 public:
  virtual ~Metric() = default;
  /// Steps between two computations; 0: metrics.log_interval.
  virtual std::int64_t every() const { return 0; }
  /// Names with numbers, as they stand in the row.
  virtual Values compute(HookContext& context) = 0;
};

/// Computes the metric after every `every`-th step and adds it to the step's row. What it draws from the default generators, `seed` and the
/// step decide (OwnDraws).
std::unique_ptr<Hook> metric_hook(std::string name, std::unique_ptr<Metric> metric, std::int64_t log_interval, std::uint64_t seed = 0);

}  // namespace kf
