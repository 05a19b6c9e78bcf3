#pragma once
// Where the numbers of a run go: the console, metrics.jsonl, later others.

#include <cstdint>
#include <string>

#include "metrics/eval_result.h"
#include "metrics/row.h"

namespace kf {

/// Within a step the loop calls `step` (where it is logged), `eval` and `saved` (where they happen), then `step_over`.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void step(const StepRow& row) = 0;
  virtual void eval(const EvalResult& result) = 0;
  /// Before a checkpoint is written: what the run has written itself must be there.
  virtual void before_save() {}
  virtual void saved(std::int64_t /*step*/, const std::string& /*path*/) {}
  /// The run went back to `step` and does the later ones again.
  virtual void rewind(std::int64_t /*step*/) {}
  /// After every step, logged or not: nothing more will come for it.
  virtual void step_over(std::int64_t /*step*/) {}
  virtual void close() {}
};

}  // namespace kf
