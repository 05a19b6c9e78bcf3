#pragma once
// Rows as trackers of experiments take them: a step, and names with numbers.

#include "metrics/eval_result.h"
#include "metrics/row.h"

namespace kf {

/// The numbers of a row under the names of names.def, without `step`, each name once; without means of a step that has no label.
Values tracked_numbers(const StepRow& row);
/// "eval/loss", "eval/tokens", ... and "eval/NAME/loss" of each set; without those over nothing.
Values tracked_numbers(const EvalResult& result);

}  // namespace kf
