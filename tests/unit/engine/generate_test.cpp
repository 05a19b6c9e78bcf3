#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <set>

#include "core/error.h"
#include "support/tiny.h"
#include "train/generate.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

using namespace kf;
using namespace kf::test;

namespace {

/// Which of the ids are ever drawn.
std::set<std::int64_t> drawn(const at::Tensor& logits, const GenerateOptions& options) {
  const at::Generator generator = at::detail::createCPUGenerator(1);
  std::set<std::int64_t> ids;
  for (int i = 0; i < 300; ++i) {
    ids.insert(sample(logits, options, generator).item<std::int64_t>());
  }
  return ids;
}

const at::Tensor kLogits = at::log(at::tensor({0.5, 0.25, 0.15, 0.1})).unsqueeze(0);

}  // namespace

TEST_CASE("sample: temperature 0 takes the likeliest", "[generate]") {
  GenerateOptions options;
  options.temperature = 0;
  CHECK(drawn(kLogits, options) == std::set<std::int64_t>{0});
}

TEST_CASE("sample: top-k keeps the k likeliest, ties too, and never more than there are", "[generate]") {
  GenerateOptions options;
  options.top_k = 2;
  CHECK((drawn(kLogits, options) == std::set<std::int64_t>{0, 1}));
  options.top_k = 1;
  CHECK((drawn(at::zeros({1, 3}), options) == std::set<std::int64_t>{0, 1, 2}));
  options.top_k = 100;
  CHECK(drawn(kLogits, options).size() == 4);
}

TEST_CASE("sample: top-p keeps the likeliest up to its mass, at least one", "[generate]") {
  GenerateOptions options;
  options.top_p = 0.74;
  CHECK((drawn(kLogits, options) == std::set<std::int64_t>{0, 1}));
  options.top_p = 0.0;
  CHECK(drawn(kLogits, options) == std::set<std::int64_t>{0});
}

TEST_CASE("generate: leaves the model's mode as it was, also after an error", "[generate]") {
  const auto model = tiny_model(tiny_config());
  model->train(true);
  GenerateOptions options;
  options.max_new_tokens = 5;
  CHECK(generate_ids(*model, {1, 2, 3}, options, std::nullopt, at::kCPU).size() == 5);
  CHECK(model->training());
  options.max_new_tokens = 100;
  CHECK_THROWS_AS(generate_ids(*model, {1, 2, 3}, options, std::nullopt, at::kCPU), Error);
  CHECK(model->training());
  options.max_new_tokens = 0;
  CHECK(generate_ids(*model, {1}, options, std::nullopt, at::kCPU).empty());
}
