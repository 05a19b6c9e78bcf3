#pragma once
// What an update minimises: its terms, and what each of them is divided by.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "data/sequence/batch.h"
#include "model/model.h"

namespace kf {

class Group;
class Loss;
class SourceLosses;

/// What terms are divided by. It is counted over the micro-batches of an update and over all ranks before the first forward, so that A
/// micro-batches or ranks equal one batch of all.
struct Counts {
  std::int64_t labels = 0;     // that count
  std::int64_t positions = 0;  // counted or not
  std::int64_t ahead = 0;      // labels of multi-token prediction, over all depths

  /// Those of all ranks.
  void add_ranks(Group& data);
};

/// A micro-batch on its way through a model.
struct Micro {
  const Batch& batch;                     // on the device
  ForwardContext& forward;                // has its step, its number and room for results
  const Counts& all;                      // of the update
  double scale = 1;                       // of the loss (fp16)
  SourceLosses* source_losses = nullptr;  // where those of a mixture are wanted
};

/// A number of the loss.
struct Term {
  std::string name;       // of the row: "ce", or a key of its own
  at::Tensor share;       // 0-dim, without a graph: this micro-batch's part of the update's mean, times the scale; undefined for 0
  bool minimised = true;  // or shown alone
};

/// The loss of a micro-batch.
struct Minimised {
  at::Tensor total;         // 0-dim, with the graph
  std::vector<Term> terms;  // the same names in the same order in every micro-batch and on every rank
};

class Objective {
 public:
  virtual ~Objective() = default;
  /// Of this rank's micro-batches, which are in host memory.
  virtual Counts count(const std::vector<Batch>& batches) const = 0;
  /// Forward and loss of a micro-batch.
  virtual Minimised operator()(Model& model, const Micro& micro) const = 0;
  /// Whether evaluations should make logits a piece at a time, as the loss does.
  virtual bool spares_logits() const { return false; }
  /// Throws Code::config for a model that cannot be trained so.
  virtual void check(Model& /*model*/) const {}

  /// From the next update on: the weight of a term (what a weight of the model's own terms is times; see `weight_names`), and another loss
  /// (null: the job's).
  virtual void set_weight(const std::string& term, double weight) = 0;
  virtual void use_loss(const Loss* loss) = 0;
};

}  // namespace kf
