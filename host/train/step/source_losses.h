#pragma once
// The loss of each source of a mixture, from the forward that trains: no second one.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "data/sequence/batch.h"

namespace kf {

class Group;

/// What one source had in an update.
struct SourceLoss {
  double ce = 0;             // sum of the cross entropy over its counted labels
  std::int64_t counted = 0;  // labels
  std::int64_t tokens = 0;   // positions, padding too
};

/// Sums over the micro-batches of one update. The device is read once, at the end, and only in updates that ask for it.
class SourceLosses {
 public:
  /// For `sources` of a mixture; 0: nothing is summed until the next call.
  void begin(std::int64_t sources) {
    sums_.assign(static_cast<std::size_t>(sources), {});
    rows_.clear();
  }
  bool wanted() const { return !sums_.empty(); }

  /// The rows of a micro-batch, one after the other, so that no second copy of all logits is made. `ce_of(row, labels)` is the sum of the
  /// cross entropy of row `row` (0-dim, on the device) against labels (T).
  void add(const Batch& batch, const std::function<at::Tensor(std::int64_t row, const at::Tensor& labels)>& ce_of);

  /// Of all ranks of `data`, and of the stages of their pipeline, the last of which alone has seen logits.
  std::vector<SourceLoss> read(Group& data, Group& stages);

 private:
  struct Row {
    std::size_t source = 0;
    at::Tensor ce;       // 0-dim
    at::Tensor counted;  // 0-dim
  };
  void add_ranks(Group& ranks);

  std::vector<SourceLoss> sums_;
  std::vector<Row> rows_;
};

/// Sum of the cross entropy of logits (T, V) against labels (T) that count; 0-dim fp32, without a graph.
at::Tensor plain_ce_sum(const at::Tensor& logits, const at::Tensor& labels);

}  // namespace kf
