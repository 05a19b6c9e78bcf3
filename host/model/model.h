#pragma once
// What the training loop, the checkpoints and generation know of a model.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/linear_loss/output_head.h"
#include "model/forward.h"
#include "model/module.h"
#include "model/step_book.h"

namespace kf {

/// model.logits_dtype.
OutputHead::Precision logits_precision(const std::string& name);

class Model : public Module {
 public:
  /// tokens (B, T) int64 -> logits (B, T, V) in the compute type. `context` may be changed (visible, cache).
  virtual at::Tensor forward(const at::Tensor& tokens, ForwardContext& context) = 0;
  /// The head alone: what ForwardResults::ahead holds (.., C) -> logits (.., V).
  virtual at::Tensor project(const at::Tensor& hidden) const;
  /// The blocks that forward runs through their weight units (weight_unit.h); none where it runs everything itself.
  virtual std::vector<std::shared_ptr<Module>> unit_modules() const { return {}; }
  /// Who shares the loss of a step; null: this rank alone.
  void share_loss_with(Group* data_ranks) { data_ranks_ = data_ranks; }
  /// Before the forward of a training micro-batch, whose context this is.
  void begin_micro(ForwardContext& context) {
    context.moment = moment_;
    *moment_ = {context.step, context.micro};
  }
  std::shared_ptr<const Moment> moment() const { return moment_; }
  /// What it counts over the micro-batches of a step; null for nothing.
  virtual StepBook* book() { return nullptr; }
  // As those of the book, without one nothing; over the ranks that share the loss.
  AuxLosses aux_losses(ForwardResults& results);
  void end_micro(const ForwardResults& results);
  void end_step(bool updated, double progress);
  bool follows_updates();
  std::vector<std::pair<std::string, double>> metrics();
  /// What `forward` gives to its last matrix, (B, T, C); only of models with a `head`.
  virtual at::Tensor hidden(const at::Tensor& tokens, ForwardContext& context);
  virtual std::optional<OutputHead> head() { return std::nullopt; }
  /// Multiplies the query weights of `layer` by `factors` (H), one a query head: the masters move, the caller publishes.
  virtual void scale_queries(std::int64_t layer, const at::Tensor& factors);
  /// An empty cache for `batch` rows of up to `capacity` positions. Throws Code::config where `has_cache` is false.
  virtual KvCache make_cache(std::int64_t batch, std::int64_t capacity) = 0;
  /// Whether every layer keeps what it needs of earlier positions; generation runs models without it over the whole text for each token.
  virtual bool has_cache() const { return true; }
  /// Whether rows behind padding (KvCache::starts) give what they give alone.
  virtual bool takes_padding() const { return false; }
  /// Whether what a cache holds of a text of `length` positions is right for a text of `longer` ones. Where it is not, the text has to run
  /// again from its beginning: rotary scalings that depend on the length move every number of every position.
  virtual bool keeps_cache(std::int64_t /*length*/, std::int64_t /*longer*/) const { return true; }

 private:
  Group* data_ranks_ = nullptr;
  std::shared_ptr<Moment> moment_ = std::make_shared<Moment>();
};

/// Allocates every weight on `device`, fills it by its rule from `seed` and its name, and casts what forward reads to `compute`.
/// Weights of fewer than two dimensions stay fp32: they are small, and norms lose most in low precision. With `kept` = `compute` the others
/// have no fp32 master: the optimizer moves what forward reads. What is frozen has none either.
/// Weights that `draws` denies stay `unfilled`: a file is to follow, and drawing for it would be in vain. Nothing: all are drawn.
using DrawsWeight = std::function<bool(const Parameter&)>;
void materialize(Model& model, at::Device device, at::ScalarType compute, std::uint64_t seed, at::ScalarType kept = at::kFloat,
                 const DrawsWeight& draws = {});
/// The same for some parameters, which have their names.
void materialize(const ParameterList& parameters, at::Device device, at::ScalarType compute, std::uint64_t seed,
                 at::ScalarType kept = at::kFloat, const DrawsWeight& draws = {});

/// Throws Code::other, naming them, where weights are `unfilled` still.
void require_values(const ParameterList& parameters);

/// Sum of elements over `parameters`, those that are not `counted` left out.
std::int64_t count_parameters(const ParameterList& parameters);

}  // namespace kf
