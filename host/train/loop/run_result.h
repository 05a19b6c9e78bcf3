#pragma once
// What a finished run says about itself: the answer of kf.run and the closing line on the terminal.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "metrics/sink.h"
#include "train/loop/hook.h"

namespace kf {

struct RunResult {
  std::string status;  // "complete", "stopped" (by a hook or a signal)
  std::string reason;  // why it stopped, where somebody said
  std::int64_t step = 0;
  std::int64_t tokens = 0;
  std::int64_t skipped = 0;                                // steps without an update
  std::optional<double> loss;                              // of the last logged step that has one
  std::optional<EvalResult> eval;                          // the last one
  std::vector<std::variant<StepRow, EvalResult>> history;  // what metrics.jsonl holds, in order: read from there when the run is over
  std::string checkpoint;                                  // path of the newest, "" without any
  double seconds = 0;
};

}  // namespace kf
