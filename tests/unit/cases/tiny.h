#pragma once
// The tiny model of the cases, and data that a test writes down itself.

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "config/config.h"
#include "data/loader.h"
#include "model/model.h"
#include "optim/optimizer.h"
#include "registry/registries.h"
#include "train/stepper.h"

namespace kf::cases {

/// dim 32, two layers, four heads, vocabulary 97, fp32.
config::Config tiny_config();

/// Rows that are handed out in order, `batch_size` at a time; the end wraps to the start.
class RowLoader final : public Loader {
 public:
  RowLoader(at::Tensor tokens, at::Tensor labels, std::int64_t batch_size);
  Batch batch(std::int64_t index) override;
  std::int64_t batches_per_epoch() const override { return tokens_.size(0) / batch_size_; }
  double lr_scale(std::int64_t /*step*/) const override { return 1; }
  std::string describe() const override { return "rows"; }
  std::string fingerprint() const override { return "rows"; }

 private:
  at::Tensor tokens_, labels_;  // (N, T)
  std::int64_t batch_size_;
};

/// Random ids below the vocabulary, (rows, length), the same for the same seed.
at::Tensor random_tokens(std::int64_t rows, std::int64_t length, std::uint64_t seed);

/// A materialized model and what an update needs.
struct Bench {
  explicit Bench(config::Config config, at::ScalarType compute = at::kFloat);

  StepResult step(Loader& data, std::int64_t number, double lr, const std::function<void(const StepResult&)>& backward_end = {});
  /// Copies of every weight, by name order of the model.
  std::vector<at::Tensor> masters() const;

  config::Config config;
  Registries registries = native_registries();
  std::shared_ptr<Model> model;
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<Loss> loss;
};

/// A free-standing weight in fp32, or with an fp32 master behind a value of a lower type.
ParameterPtr free_weight(const std::string& name, const at::Tensor& start, at::ScalarType type = at::kFloat);

bool bitwise_equal(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b);
/// Largest difference over the largest magnitude of `b`.
double relative_difference(const at::Tensor& a, const at::Tensor& b);

}  // namespace kf::cases
