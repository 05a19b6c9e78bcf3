// Workers that train apart: what an exchange does, and what it must not do.

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>

#include "core/error.h"
#include "diloco_worker.h"
#include "equal_ranks.h"
#include "parallel/thread_ranks.h"
#include "parallel/traffic.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

using namespace kf;
using namespace kf::test;

namespace {

config::Config workers_of(std::int64_t interval) {
  config::Config c = small_config();
  c.diloco.interval = interval;
  return c;
}

struct Seen {
  std::vector<double> losses;
  std::vector<std::vector<at::Tensor>> weights;  // after each step
};

/// Six steps of two workers, as each rank sees them; `degrees`: with the workers.
std::vector<Seen> train_apart(config::Config config, const PerAxis& degrees, double lr = 1e-3) {
  const Mesh mesh(degrees);
  config.distributed.pp = degrees.pp;
  config.distributed.dp_replicate = degrees.dp_replicate;
  config.distributed.dp_shard = degrees.dp_shard;
  config.distributed.cp = degrees.cp;
  config.distributed.tp = degrees.tp;
  std::vector<Seen> seen(static_cast<std::size_t>(mesh.size()));
  run_ranks(mesh.size(), [&](Group& all) {
    const World world(all, mesh);
    DilocoWorker worker(config, world);
    SharedRows data(world.share(), false);
    Seen& mine = seen[static_cast<std::size_t>(all.rank())];
    for (std::int64_t step = 0; step < 6; ++step) {
      mine.losses.push_back(worker.step(data, step, lr).loss);
      mine.weights.push_back(worker.weights());
    }
  });
  return seen;
}
constexpr PerAxis kTwo{1, 2, 1, 1, 1, 1};

double largest_difference(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  double out = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    out = std::max(out, (a[i] - b[i]).abs().max().item<double>());
  }
  return out;
}

/// Both workers have as many labels, all of which count.
class FullRows final : public Loader {
 public:
  explicit FullRows(Share share) : share_(share) {}
  Batch batch(std::int64_t index) override {
    const auto seed = static_cast<std::uint64_t>(2 * index + share_.rank);
    return make_batch(random_tokens(kRows / share_.world, kLength, 2 * seed), random_tokens(kRows / share_.world, kLength, 2 * seed + 1));
  }
  std::int64_t batches_per_epoch() const override { return 1000; }
  std::string describe() const override { return "rows"; }
  std::string fingerprint() const override { return "rows"; }

 private:
  Share share_;
};

}  // namespace

TEST_CASE("diloco: an exchange at every update, at rate 1 and without momentum, is data parallelism with SGD", "[diloco]") {
  // outer - mean(outer - (outer - lr g)) = outer - lr mean(g), and with as many labels on each worker the mean of their gradients is the
  // gradient of all. The two differences round a weight below 1 by 2^-24 at most each, six times.
  config::Config c = workers_of(1);
  c.optimizer.name = "sgdm";
  c.train.grad_clip_norm = 0;  // a worker's own norm would be another one
  c.diloco.outer_lr = 1;
  c.diloco.outer_momentum = 0;
  c.diloco.nesterov = GENERATE(true, false);
  std::vector<at::Tensor> apart, together;
  std::vector<double> losses_apart, losses_together;
  run_ranks(2, [&](Group& all) {
    const World world(all, Mesh({1, 2, 1, 1, 1, 1}));
    FullRows data(world.share());
    DilocoWorker worker(c, world);
    config::Config plain = c;
    plain.diloco.interval = 0;
    Bench bench(plain, at::kFloat, world);
    for (std::int64_t step = 0; step < 6; ++step) {
      const StepResult a = worker.step(data, step, 0.1), b = bench.step(data, step, 0.1);
      if (all.rank() == 0) {
        losses_apart.push_back(a.loss);
        losses_together.push_back(b.loss);
      }
    }
    if (all.rank() == 0) {
      apart = worker.weights();
      together = bench.masters();
    }
  });
  CHECK(largest_difference(apart, together) < 6 * 4 * std::pow(2.0, -24));
  for (std::size_t i = 0; i < losses_apart.size(); ++i) {
    CHECK(losses_apart[i] == Approx(losses_together[i]).epsilon(1e-6));
  }
}

TEST_CASE("diloco: workers part between exchanges and have the same bits after one", "[diloco]") {
  config::Config c = workers_of(3);
  c.diloco.exchange_dtype = GENERATE("fp32", "bf16", "int8");
  const std::vector<Seen> seen = train_apart(c, kTwo);
  for (std::size_t step = 0; step < 6; ++step) {
    INFO(c.diloco.exchange_dtype << ", step " << step + 1);
    const bool exchanged = (step + 1) % 3 == 0;
    CHECK(bitwise_equal(seen[0].weights[step], seen[1].weights[step]) == exchanged);
  }
  CHECK(seen[0].losses == seen[1].losses);  // what is told is the mean over the workers
  const std::vector<Seen> again = train_apart(c, kTwo);
  CHECK(bitwise_equal(again[0].weights.back(), seen[0].weights.back()));
}

TEST_CASE("diloco: a worker may be of several ranks", "[diloco]") {
  config::Config c = workers_of(2);
  c.distributed.zero_stage = GENERATE(1, 3);
  // Worker 0 of two ranks reads rows 0, 1 mod 4, that of one rank rows 0 mod 2, so such runs differ. What must hold is that ranks of a
  // worker agree and workers meet.
  const std::vector<Seen> wide = train_apart(c, {1, 2, 2, 1, 1, 1});
  CHECK(wide[0].losses == wide[3].losses);
  CHECK(bitwise_equal(wide[0].weights[0], wide[1].weights[0]));
  CHECK(bitwise_equal(wide[2].weights[0], wide[3].weights[0]));
  CHECK_FALSE(bitwise_equal(wide[0].weights[0], wide[2].weights[0]));
  for (std::size_t rank = 1; rank < 4; ++rank) {
    CHECK(bitwise_equal(wide[0].weights[1], wide[rank].weights[1]));
  }
}

TEST_CASE("diloco: a worker may divide its layers, its model or its sequences", "[diloco]") {
  // Such ranks read what one rank reads, so losses differ by the order of sums alone, as in equal_ranks.h.
  config::Config c = workers_of(2);
  c.model.vocab_size = 98;  // tp divides it
  const std::vector<double> one = train_apart(c, kTwo)[0].losses;
  for (const PerAxis& degrees : {PerAxis{1, 2, 1, 1, 1, 2}, PerAxis{2, 2, 1, 1, 1, 1}, PerAxis{1, 2, 1, 2, 1, 1}}) {
    INFO("pp " << degrees.pp << ", cp " << degrees.cp << ", tp " << degrees.tp);
    for (const Seen& rank : train_apart(c, degrees)) {
      for (std::size_t step = 0; step < one.size(); ++step) {
        CHECK(rank.losses[step] == Approx(one[step]).epsilon(1e-6));
      }
    }
  }
}

TEST_CASE("diloco: between exchanges nothing of the size of weights travels between workers", "[diloco]") {
  const config::Config c = workers_of(2);
  std::array<Traffic, 2> traffic;  // of the first step, and of the second one, which exchanges
  std::int64_t numbers = 0;
  run_ranks(2, [&](Group& all) {
    const World world(all, Mesh({1, 2, 1, 1, 1, 1}));
    DilocoWorker worker(c, world);
    SharedRows data(world.share(), false);
    for (std::size_t step = 0; step < 2; ++step) {
      const Traffic before = total_of(traffic_of(all));
      worker.step(data, static_cast<std::int64_t>(step), 1e-3);
      if (all.rank() == 0) {
        traffic[step] = total_of(traffic_of(all)).since(before);
        numbers = count_parameters(worker.model().parameters());
      }
    }
  });
  const auto sums = static_cast<std::size_t>(CallKind::sum);
  CHECK(traffic[0].calls[sums] == 0);
  CHECK(traffic[0].all_bytes() < 2000);  // the numbers of a row, as text
  // Of two ranks each sends half of what it has and half of the sum; small tensors go whole, which is as much.
  CHECK(static_cast<double>(traffic[1].bytes[sums]) == Approx(4.0 * static_cast<double>(numbers)).epsilon(1e-3));
}

TEST_CASE("diloco: what must end one worker ends all, with its words", "[diloco]") {
  config::Config c = workers_of(5);
  c.train.on_nan = "abort";
  std::array<std::string, 2> why;
  run_ranks(2, [&](Group& all) {
    const World world(all, Mesh({1, 2, 1, 1, 1, 1}));
    DilocoWorker worker(c, world);
    SharedRows data(world.share(), false);
    CHECK(worker.step(data, 0, 1e-3).abort.empty());
    if (all.rank() == 1) {
      const at::NoGradGuard no_grad;
      worker.model().parameters().front()->value.fill_(std::nan(""));
    }
    why[static_cast<std::size_t>(all.rank())] = worker.step(data, 1, 1e-3).abort;
  });
  CHECK_THAT(why[0], Catch::StartsWith("worker 1: step 2: loss nan") && Catch::Contains("train.on_nan = \"abort\" ends the run here"));
  CHECK(why[1] == why[0]);
}

TEST_CASE("diloco: a state of other workers says what to do", "[diloco]") {
  run_ranks(2, [&](Group& all) {
    const World world(all, Mesh({1, 2, 1, 1, 1, 1}));
    DilocoWorker worker(workers_of(5), world);
    SharedRows data(world.share(), false);
    worker.step(data, 0, 1e-3);
    OptimizerState state = worker.outer().state();
    std::erase_if(state.tensors, [](const auto& named) { return named.first.starts_with(kOuterPrefix); });
    CHECK_THROWS_WITH(worker.outer().load(state),
                      Catch::Contains("the checkpoint is of a run without diloco.interval") && Catch::Contains("checkpoint.init_from"));
  });
}

TEST_CASE("diloco: what one worker learns reaches the others", "[diloco]") {
  // Each of two workers sees one batch of random tokens, again and again. Of the other's it can know nothing by itself: no better than
  // even odds over the vocabulary, a loss of ln(97), so alone it would come to ln(97) / 2 over both at best.
  config::Config c = workers_of(5);
  c.diloco.outer_lr = 0.7;
  c.diloco.outer_momentum = 0.5;
  std::array<double, 2> last{};
  run_ranks(2, [&](Group& all) {
    const World world(all, Mesh({1, 2, 1, 1, 1, 1}));
    DilocoWorker worker(c, world);
    const auto batch_of = [](std::int64_t reader) {
      const auto seed = static_cast<std::uint64_t>(10 * reader);
      return make_batch(random_tokens(2, kLength, seed + 1), random_tokens(2, kLength, seed + 2));
    };
    FixedLoader own({batch_of(world.share().rank)}), others({batch_of(1 - world.share().rank)});
    for (std::int64_t step = 0; step < 60; ++step) {
      worker.step(own, step, 1e-2);
    }
    // The mean over workers, each of which looks at the batch of the other one; the rate 0 moves nothing.
    const double loss = worker.step(others, 60, 0).loss;
    last[static_cast<std::size_t>(all.rank())] = loss;
  });
  CHECK(last[0] < std::log(97.0) / 2);
  CHECK(last[1] == last[0]);
}

TEST_CASE("diloco: blocks of int8 are off by half a step of their scale at most", "[diloco]") {
  const at::Tensor numbers = at::cat({at::linspace(-3, 5, 64), at::zeros({64}), at::linspace(1e-8, 2e-8, 30)});
  const QuantizedBlocks blocks = quantize_blocks(numbers);
  REQUIRE(blocks.numbers.numel() == 158);
  REQUIRE(blocks.scales.numel() == 3);
  const at::Tensor error = (widen_blocks(blocks) - numbers).abs();
  const double ulp = 1 + 1e-6;  // the scale is rounded, too
  CHECK(error.narrow(0, 0, 64).max().item<double>() <= 5.0 / 127 / 2 * ulp);
  CHECK(error.narrow(0, 64, 64).max().item<double>() == 0);
  CHECK(error.narrow(0, 128, 30).max().item<double>() <= 2e-8 / 127 / 2 * ulp);
}
