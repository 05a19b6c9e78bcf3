// What a rank holds: masters, moments, gradients and weights fall with the number of ranks, as the stage says.

#include <ATen/ATen.h>

#include <array>

#include "core/error.h"
#include "parallel/thread_ranks.h"
#include "support/tensor_memory.h"
#include "support/tiny.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

using namespace kf;
using namespace kf::test;

namespace {

/// Bytes of a rank, in shares of the weights in fp32.
struct Held {
  double resting = 0;  // between steps
  double most = 0;     // in a step, beyond that
};

/// Layers of equal size and a small vocabulary, two tokens a step: there is little but weights.
config::Config wide() {
  config::Config c = tiny_config();
  c.model.dim = 128;
  c.model.n_layers = 8;
  c.model.ffn_hidden_dim = 256;
  c.model.vocab_size = 32;
  return c;
}

/// Of the rank that holds most.
Held held(std::int64_t ranks, std::int64_t stage, at::ScalarType compute, std::int64_t micros = 1, bool each_micro = false) {
  config::Config c = wide();
  c.train.grad_accum_steps = micros;
  c.distributed.reduce_each_micro = each_micro;
  c.distributed.zero_stage = stage;
  std::vector<Held> all(static_cast<std::size_t>(ranks));
  run_ranks(ranks, [&](Group& group) {
    const auto memory = std::make_shared<TensorMemory>();
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, memory);
    Bench bench(c, compute, World(group, Mesh({1, 1, ranks, 1, 1, 1})));
    FixedLoader data(random_tokens(1, 2, 1, 32), random_tokens(1, 2, 2, 32), 1);
    const double weights = 4 * static_cast<double>(count_parameters(bench.model->parameters()));
    const double before = memory->now();
    bench.step(data, 0, 1e-3);
    const double resting = memory->now();
    memory->reset();
    bench.step(data, 1, 1e-3);
    KF_CHECK(std::abs(memory->now() - resting) < 4096, Code::other, "a step leaves {} bytes", memory->now() - resting);
    KF_CHECK(before > 0, Code::other, "nothing was counted");
    all[static_cast<std::size_t>(group.rank())] = {resting / weights, (memory->most() - resting) / weights};
  });
  return *std::max_element(all.begin(), all.end(), [](const Held& a, const Held& b) { return a.resting < b.resting; });
}

}  // namespace

TEST_CASE("memory of a rank: what a stage divides falls with the number of ranks", "[data_parallel]") {
  // Weights, masters and two moments; in fp32 weights and masters are one.
  for (const std::int64_t ranks : {1, 2, 4}) {
    const double share = 1.0 / static_cast<double>(ranks);
    INFO(ranks << " ranks");
    CHECK(held(ranks, 1, at::kFloat).resting == Approx(1 + 2 * share).epsilon(0.02));
    CHECK(held(ranks, 2, at::kFloat).resting == Approx(1 + 2 * share).epsilon(0.02));
    CHECK(held(ranks, 1, at::kBFloat16).resting == Approx(0.5 + 3 * share).epsilon(0.02));
    if (ranks > 1) {
      CHECK(held(ranks, 3, at::kFloat).resting == Approx(3 * share).epsilon(0.02));
      CHECK(held(ranks, 3, at::kBFloat16).resting == Approx(3 * share).epsilon(0.02));
    }
  }
}

TEST_CASE("memory of a rank: gradients are whole where micro-batches add up alone, weights never from stage 3 on", "[data_parallel]") {
  constexpr double kLayer = 1.0 / 8;  // the share of a layer
  const double whole = held(4, 1, at::kFloat, 2).most;
  CHECK(whole > 1);  // every gradient is there after the first of two micro-batches
  CHECK(held(4, 3, at::kFloat, 2).most > 1);
  CHECK(held(4, 2, at::kFloat, 2, true).most < 0.25 + 3 * kLayer);
  CHECK(held(4, 3, at::kFloat, 2, true).most < 0.25 + 5 * kLayer);
  // A part of the gradients, and of a layer: its gradients, the buffer that is reduced, and with stage 3 its weights with their buffer.
  CHECK(held(4, 2, at::kFloat).most < 0.25 + 3 * kLayer);
  CHECK(held(4, 3, at::kFloat).most < 0.25 + 5 * kLayer);
}
