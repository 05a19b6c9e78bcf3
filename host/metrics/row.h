#pragma once
// The numbers of a step.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace kf {

/// Names with numbers.
using Values = std::vector<std::pair<std::string, double>>;

/// One logged step. `loss` is the optimised total; NaN stays NaN.
struct StepRow {
  std::int64_t step = 0;
  bool has_loss = true;  // false in a step without a label that counts: loss, ce, z_loss, aux_loss and grad_norm then stand for nothing
  double loss = 0;
  double ce = 0;  // cross entropy, whatever train.loss_fn is
  double z_loss = 0;
  double aux_loss = 0;
  double grad_norm = 0;
  double lr = 0;
  std::int64_t tokens = 0;
  double tokens_per_sec = 0;
  double mfu = 0;  // share of the peak, 0 where unknown
  std::int64_t memory_bytes = 0;
  double seconds = 0;        // of training, over all processes of the run
  double time = 0;           // when the row was made: seconds since 1970, UTC
  std::int64_t skipped = 0;  // of the steps so far: those without an update
  Values extra;              // from hooks
};

}  // namespace kf
