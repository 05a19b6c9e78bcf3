#pragma once
// Losses give sums over counted tokens; the loop divides once, over all micro-batches and ranks.

#include <ATen/core/Tensor.h>

#include <string>

namespace kf {

struct Batch;
struct OutputHead;
class Group;

/// What a sum of the step is multiplied by: 1 / counted tokens, train.z_loss_weight / positions.
struct LossFactors {
  double ce = 1;
  double z = 0;
  /// Over whom the rows of a model's head are divided; null: they lie here.
  Group* vocabulary = nullptr;
};

/// The loss of some positions, factors applied; all 0-dim fp32, undefined where there is none.
struct LossTerms {
  at::Tensor total;            // carries the gradient; the others may
  at::Tensor ce, own, z_loss;  // own: of a loss that is not the cross entropy
};

class Loss {
 public:
  virtual ~Loss() = default;
  /// logits (N, V), labels (N) int64 with kIgnore for positions that do not count -> 0-dim fp32: the sum over counted tokens
  /// (0 when there are none). Computed in fp32 whatever the type of the logits.
  virtual at::Tensor sum(const at::Tensor& logits, const at::Tensor& labels) const = 0;
  /// The name of a loss that is not the cross entropy: rows have its number as loss_fn/NAME, and the cross entropy beside it. Empty for the
  /// cross entropy, however it is computed.
  virtual std::string own_name() const { return {}; }
  /// Whether `from_hidden` is called in place of `sum`, and the model never makes all logits.
  virtual bool takes_hidden() const { return false; }
  /// Whether `from_hidden` takes a head that is divided (LossFactors::vocabulary) and is then called, too. Others get logits that were
  /// put together.
  virtual bool takes_divided_head() const { return false; }
  /// Whether `from_hidden` gives the same number with fewer logits held, and is called where a model on a CPU has a head to give and nobody
  /// looks at its modules.
  virtual bool prefers_hidden() const { return false; }
  /// hidden (N, C), the model's head, labels (N).
  virtual LossTerms from_hidden(const at::Tensor& /*hidden*/, const OutputHead& /*head*/, const at::Tensor& /*labels*/,
                                const LossFactors& /*factors*/) const {
    return {};
  }
  /// The same of a batch, for losses that look at more than its labels. logits (N, V), N = B T.
  virtual at::Tensor sum_of(const at::Tensor& logits, const Batch& batch) const;
};

/// Sum over all positions of logsumexp(logits)^2 in fp32 (PaLM, section 5); the caller multiplies by z_loss_weight / positions.
at::Tensor z_loss_sum(const at::Tensor& logits);

}  // namespace kf
