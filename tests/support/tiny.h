#pragma once
// What tests of the engine share: a tiny model, batches written by hand, one update from outside the loop.

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "builtins/builtins.h"
#include "config/schema/config.h"
#include "data/loader/loader.h"
#include "model/model.h"
#include "optim/optimizer.h"
#include "registry/registries.h"
#include "train/step/loss.h"
#include "train/step/stepper.h"

namespace kf::test {

inline constexpr std::int64_t kTinyVocab = 97;

/// dim 32, 2 layers, 4 heads over 2 kv heads, vocabulary 97; two rows of 32 tokens, fp32.
config::Config tiny_config();

/// Built and materialised with `seed`.
std::shared_ptr<Model> tiny_model(const config::Config& config, std::uint64_t seed = 1, at::ScalarType compute = at::kFloat);

/// logits (B, T, V) in evaluation, without gradients.
at::Tensor logits_of(Model& model, const at::Tensor& tokens, const at::Tensor& doc_ids = {});

/// Random ids below `vocab`, (rows, length), the same for the same seed.
at::Tensor random_tokens(std::int64_t rows, std::int64_t length, std::uint64_t seed, std::int64_t vocab = kTinyVocab);

/// A batch of these tokens and labels; `counted` is counted here.
Batch make_batch(const at::Tensor& tokens, const at::Tensor& labels);

/// Hands out the batches that it was given, again and again.
class FixedLoader final : public Loader {
 public:
  explicit FixedLoader(std::vector<Batch> batches) : batches_(std::move(batches)) {}
  /// The rows of (N, T) tokens and labels, `batch_size` at a time.
  FixedLoader(const at::Tensor& tokens, const at::Tensor& labels, std::int64_t batch_size);

  Batch batch(std::int64_t index) override { return batches_.at(static_cast<std::size_t>(index) % batches_.size()); }
  std::int64_t batches_per_epoch() const override { return static_cast<std::int64_t>(batches_.size()); }
  std::string describe() const override { return "fixed batches"; }
  std::string fingerprint() const override { return "fixed"; }

 private:
  std::vector<Batch> batches_;
};

/// A materialized model and what an update needs.
struct Bench {
  /// `world`: of the ranks that train it together.
  explicit Bench(config::Config config, at::ScalarType compute = at::kFloat, const World& world = {});

  StepResult step(Loader& data, std::int64_t number, double lr, const std::function<void(const StepResult&)>& backward_end = {});
  /// From `config` as it is now.
  void make_stepper();
  /// Copies of every weight, by name order of the model.
  std::vector<at::Tensor> masters() const;

  config::Config config;
  World world;
  Registries registries = native_registries();
  std::shared_ptr<Model> model;
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<Loss> loss;
  std::unique_ptr<Objective> objective;
  std::unique_ptr<Stepper> stepper;  // remembers what the guard has seen
};

/// A free-standing weight in fp32, or with an fp32 master behind a value of a lower type.
ParameterPtr free_weight(const std::string& name, const at::Tensor& start, at::ScalarType type = at::kFloat);

bool bitwise_equal(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b);
/// Largest difference over the largest magnitude of `b`.
double relative_difference(const at::Tensor& a, const at::Tensor& b);

}  // namespace kf::test
