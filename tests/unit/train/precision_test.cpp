// H9: low-precision weights move by fp32 masters.

#include <ATen/ATen.h>

#include <catch2/catch.hpp>

#include "optim/adamw.h"
#include "support/tiny.h"

namespace kf::cases {
using namespace kf::test;
namespace {

/// `steps` AdamW updates under a constant gradient: each moves the weight by lr.
void drift(Optimizer& optimizer, const ParameterPtr& weight, int steps, double lr) {
  for (int i = 0; i < steps; ++i) {
    weight->set_gradient(at::ones(weight->shape));
    optimizer.step(lr);
    weight->publish();
  }
}

double first(const at::Tensor& tensor) { return tensor.detach().to(at::kDouble).flatten()[0].item<double>(); }

}  // namespace

TEST_CASE("precision: a bf16 weight moves by updates far below its spacing", "[cases][H9]") {
  struct Row {
    double start, lr, end;
  };
  const Row row = GENERATE(Row{1.0, 6e-4, 0.94}, Row{0.02, 1e-5, 0.019}, Row{256.0, 1e-3, 255.9});
  CAPTURE(row.start, row.lr);
  const Kernels* const kernels = GENERATE(&fused_kernels(), &plain_kernels());
  const ParameterPtr weight = free_weight("layer.weight", at::full({4, 4}, row.start), at::kBFloat16);
  AdamW optimizer({{{weight}, 0.0}}, {0.9, 0.95, 1e-8, kernels});
  drift(optimizer, weight, 100, row.lr);
  CHECK(first(weight->master) == Approx(row.end).epsilon(1e-4));
  CHECK(weight->master.scalar_type() == at::kFloat);
  CHECK(weight->value.scalar_type() == at::kBFloat16);
  CHECK(at::equal(weight->value.detach(), weight->master.to(at::kBFloat16)));
}

TEST_CASE("precision: the same updates applied to bf16 itself would be lost", "[cases][H9]") {
  at::Tensor one = at::ones({}, at::kBFloat16), small = at::full({}, 0.02, at::kBFloat16);
  for (int i = 0; i < 100; ++i) {
    one.sub_(6e-4);
    small.sub_(1e-5);
  }
  CHECK(one.item<double>() == 1.0);
  CHECK(small.item<double>() == 0.02001953125);
}

TEST_CASE("precision: a bf16 model keeps masters, moments and norms in fp32", "[cases][H9]") {
  Bench bench(tiny_config(), at::kBFloat16);
  FixedLoader data(random_tokens(4, 32, 3), random_tokens(4, 32, 4), 2);
  bench.step(data, 0, 1e-5);
  for (const ParameterPtr& parameter : bench.model->parameters()) {
    CAPTURE(parameter->name);
    CHECK(parameter->master.scalar_type() == at::kFloat);
    CHECK(parameter->value.scalar_type() == (parameter->shape.size() < 2 ? at::kFloat : at::kBFloat16));
  }
  for (const auto& [name, tensor] : bench.optimizer->state().tensors) {
    CAPTURE(name);
    CHECK(tensor.scalar_type() == at::kFloat);
  }
  for (const ParameterPtr& parameter : bench.model->parameters()) {
    if (parameter->name.find("norm") != std::string::npos) {
      CHECK(first(parameter->master) != 1.0);  // they move from the first update on
    }
  }
}

}  // namespace kf::cases
