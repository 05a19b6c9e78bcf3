// metrics.histogram_interval: how weights and gradients are spread.

#include <ATen/ATen.h>

#include <cmath>

#include "support/tiny.h"
#include "train/step/weight_histograms.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

using namespace kf;
using namespace kf::test;

namespace {

/// The bucket of a number, by its edges.
std::size_t bucket_of(float value) {
  std::size_t bucket = 0;
  while (bucket + 1 < kBuckets && static_cast<double>(value) >= bucket_edge(bucket + 1)) {
    ++bucket;
  }
  return bucket;
}

}  // namespace

TEST_CASE("histograms: a step's weights and gradients are counted, each once", "[histograms]") {
  Bench bench(tiny_config());
  FixedLoader data(random_tokens(4, 32, 3), random_tokens(4, 32, 4), 4);
  WeightHistograms histograms(4, bench.model->parameters());
  CHECK(histograms.due(4));
  CHECK_FALSE(histograms.due(5));
  CHECK_FALSE(WeightHistograms(0, bench.model->parameters()).due(4));
  Stepper::Callbacks callbacks;
  callbacks.histograms = &histograms;
  histograms.begin();
  bench.stepper->run(data, 0, 1e-2, callbacks);
  const Histograms taken = histograms.take(4);
  CHECK(taken.step == 4);
  const ParameterList parameters = bench.model->parameters();
  REQUIRE(taken.all.size() == 2 * parameters.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Histogram& gradient = taken.all[2 * i];
    const Histogram& weight = taken.all[2 * i + 1];
    CHECK(gradient.name == "gradients/" + parameters[i]->name);
    CHECK(weight.name == "weights/" + parameters[i]->name);
    const at::Tensor master = parameters[i]->master.detach().reshape({-1});
    std::vector<double> counts(kBuckets);
    for (std::int64_t k = 0; k < master.numel(); ++k) {
      counts[bucket_of(master[k].item<float>())] += 1;
    }
    double apart = 0;
    double count = 0;
    for (std::size_t k = 0; k < counts.size(); ++k) {
      apart += std::fabs(counts[k] - weight.counts[k]);
      count += gradient.counts[k];
    }
    CHECK(apart <= 2e-4 * static_cast<double>(master.numel()) + 2);  // a number within rounding of an edge
    CHECK(count == static_cast<double>(master.numel()));
    CHECK(weight.max == master.max().item<float>());
    CHECK(weight.min == master.min().item<float>());
    CHECK(weight.sum == Approx(master.sum(at::kDouble).item<double>()).margin(1e-6));
    CHECK(weight.sum_squares == Approx(master.to(at::kDouble).square().sum().item<double>()).epsilon(1e-4));
  }
}
