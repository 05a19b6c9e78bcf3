#pragma once
// What a finished run says about itself: the answer of kf.run, the closing line on the terminal, the end of its sinks.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "metrics/eval_result.h"
#include "metrics/row.h"

namespace kf {

struct RunResult {
  std::string status;  // "complete", "stopped" (by a hook or a signal)
  std::string reason;  // why it stopped, where somebody said
  std::int64_t step = 0;
  std::int64_t tokens = 0;
  std::int64_t skipped = 0;        // steps without an update
  std::optional<double> loss;      // of the last logged step that has one
  std::optional<EvalResult> eval;  // the last one
  // What metrics.jsonl holds, in order: read from there when the run is over. Empty where metrics.sinks leaves it out, and for sinks.
  std::vector<std::variant<StepRow, EvalResult>> history;
  std::string checkpoint;  // path of the newest, "" without any
  double seconds = 0;
};

}  // namespace kf
