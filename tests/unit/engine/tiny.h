#pragma once
// A tiny model for unit tests, and batches made by hand.

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

#include "config/config.h"
#include "data/loader.h"
#include "model/model.h"

namespace kf::test {

/// dim 32, 2 layers, 4 heads over 2 kv heads, vocabulary 97.
config::Config tiny_config();

/// Built and materialised with `seed`.
std::shared_ptr<Model> tiny_model(const config::Config& config, std::uint64_t seed = 1, at::ScalarType compute = at::kFloat);

/// logits (B, T, V) in evaluation, without gradients.
at::Tensor logits_of(Model& model, const at::Tensor& tokens, const at::Tensor& doc_ids = {});

/// Random ids (rows, length).
at::Tensor random_tokens(std::int64_t rows, std::int64_t length, std::int64_t vocab, std::uint64_t seed);

/// A batch of these tokens and labels; `counted` is counted here.
Batch make_batch(const at::Tensor& tokens, const at::Tensor& labels);

/// Hands out the batches that it was given, again and again.
class FixedLoader final : public Loader {
 public:
  explicit FixedLoader(std::vector<Batch> batches) : batches_(std::move(batches)) {}
  Batch batch(std::int64_t index) override { return batches_.at(static_cast<std::size_t>(index) % batches_.size()); }
  std::int64_t batches_per_epoch() const override { return static_cast<std::int64_t>(batches_.size()); }
  double lr_scale(std::int64_t) const override { return 1; }
  std::string describe() const override { return "fixed batches"; }
  std::string fingerprint() const override { return "fixed"; }

 private:
  std::vector<Batch> batches_;
};

}  // namespace kf::test
