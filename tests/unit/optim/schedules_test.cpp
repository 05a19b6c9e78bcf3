// Durations, cycles, further shapes, and batches that change their size.

#include <cmath>

#include "config/plan/batch_plan.h"
#include "optim/schedules.h"
#include "support/tiny.h"

#include <catch2/catch.hpp>

namespace kf::test {
namespace {

std::vector<double> factors(const std::string& name, const config::SchedulerConfig& config, std::int64_t steps,
                            const PowerScale& power = {}) {
  const auto schedule = ending(make_native_schedule(name, config, steps, power), config);
  std::vector<double> out;
  for (std::int64_t step = 0; step < steps; ++step) {
    out.push_back(schedule->factor(step));
  }
  return out;
}

config::SchedulerConfig plain(config::Duration warmup, double floor) {
  config::SchedulerConfig config;
  config.warmup_steps = warmup;
  config.min_lr_ratio = floor;
  return config;
}

}  // namespace

TEST_CASE("schedule: shares are shares of the schedule, rounded down", "[schedule]") {
  config::SchedulerConfig shares = plain(config::Duration::of_share(0.1), 0.1);
  shares.stable_steps = config::Duration::of_share(0.55);
  shares.decay_steps = config::Duration::of_share(0.29);
  config::SchedulerConfig steps = plain(10, 0.1);
  steps.stable_steps = 55;
  steps.decay_steps = 29;
  CHECK(factors("wsd", shares, 100) == factors("wsd", steps, 100));
  CHECK(config::Duration::of_share(1.0).of(7) == 7);
  CHECK(config::Duration::of_share(0.5).of(7) == 3);
  CHECK(config::Duration(1).of(7) == 1);
}

TEST_CASE("schedule: past total_steps the floor is held, or the rate is 0", "[schedule]") {
  config::SchedulerConfig config = plain(2, 0.1);
  config.total_steps = 10;
  const std::vector<double> held = factors("cosine", config, 15);
  CHECK(held[9] > 0.1);
  CHECK(held[10] == Approx(0.1));
  CHECK(held[14] == held[10]);
  config.after = "zero";
  const std::vector<double> zero = factors("cosine", config, 15);
  CHECK(zero[9] == held[9]);
  CHECK(zero[10] == 0);
}

TEST_CASE("schedule: cycles start again, by a number or by their length, the last one shorter", "[schedule]") {
  config::SchedulerConfig config = plain(2, 0.1);
  config.cycles = 3;
  const std::vector<double> jumps = factors("linear", config, 30);
  CHECK(jumps[0] == 0);
  CHECK(jumps[10] == 1);  // no warm-up: straight to the peak
  CHECK(jumps[20] == 1);
  CHECK(jumps[19] == Approx(1 - 0.9 * 0.9));
  config.cycles = 1;
  config.cycle_length = 12;
  config.rewarmup_steps = config::Duration::of_share(0.25);
  const std::vector<double> rates = factors("linear", config, 30);
  CHECK(rates[12] == Approx(0.1));  // rises from where the cycle before ended
  CHECK(rates[13] == Approx(0.4));
  CHECK(rates[15] == 1);
  CHECK(rates[24] == Approx(0.1));
  CHECK(rates[25] == 1);  // a quarter of the 6 steps that are left is 1
}

TEST_CASE("schedule: cycles start where a list says, or after lengths of a list, in steps or shares", "[schedule]") {
  const auto starts = [](const config::Durations& cycles, const config::Durations& length, std::int64_t steps) {
    config::SchedulerConfig config = plain(0, 0.1);
    config.cycles = cycles;
    config.cycle_length = length;
    std::vector<std::int64_t> out;  // where the rate jumps to the peak
    const std::vector<double> rates = factors("linear", config, steps);
    for (std::size_t i = 0; i < rates.size(); ++i) {
      if (rates[i] == 1 && (i == 0 || rates[i - 1] < 1)) {
        out.push_back(static_cast<std::int64_t>(i));
      }
    }
    return out;
  };
  using List = std::vector<config::Duration>;
  using Starts = std::vector<std::int64_t>;
  const auto share = [](double value) { return config::Duration::of_share(value); };
  const auto list = [](List durations) { return config::Durations(std::move(durations)); };
  CHECK(starts(list({10, 25}), 0, 40) == Starts{0, 10, 25});
  CHECK(starts(list({share(0.25), share(0.5), 35}), 0, 40) == Starts{0, 10, 20, 35});
  CHECK(starts(1, list({5, 10}), 40) == Starts{0, 5, 15});  // the rest is one more cycle
  CHECK(starts(1, list({share(0.5), 10, 10}), 40) == Starts{0, 20, 30});
  CHECK(starts(1, share(0.25), 101) == Starts{0, 25, 50, 75});  // four quarters of 101 steps
  CHECK(starts(1, list({share(0.3), share(0.7)}), 101) == Starts{0, 30});
  CHECK(starts(3, 0, 30) == Starts{0, 10, 20});
}

TEST_CASE("schedule: inv_sqrt, inv and power follow their formulas", "[schedule]") {
  config::SchedulerConfig config = plain(4, 0.1);
  config.inv_sqrt_timescale = 16;
  const std::vector<double> root = factors("inv_sqrt", config, 4000);
  CHECK(root[2] == 0.5);
  CHECK(root[10] == 1);
  CHECK(root[64] == Approx(0.5));
  CHECK(root[3999] == 0.1);
  const std::vector<double> inverse = factors("inv", config, 104);
  CHECK(inverse[54] == Approx(1 / (9 * 0.5 + 1)));
  CHECK(inverse[4] == Approx(1 / (9 * 0.01 + 1)));
  const PowerScale scale{1e-2, 8, 16};
  const std::vector<double> power = factors("power", config, 400, scale);
  CHECK(power[4] == 1);
  CHECK(power[304] == Approx(std::min(1.0, 8 * 4.6 * std::pow(300.0 * 8 * 16, -0.51) / 1e-2)));
  config.power_a = 0.01;
  CHECK(factors("power", config, 400, scale)[304] == Approx(8 * 0.01 * std::pow(300.0 * 8 * 16, -0.51) / 1e-2));
}

TEST_CASE("batches: an update's micro-batches and their place in the data follow from the step alone", "[batches]") {
  config::TrainConfig train;
  train.batch_size = 2;
  train.batch_schedule = {{0, 4}, {3, 8}, {5, 2}};
  const config::BatchPlan plan(train, 1);
  std::int64_t next = 0;
  for (std::int64_t step = 0; step < 8; ++step) {
    CAPTURE(step);
    CHECK(plan.first_micro(step) == next);
    CHECK(plan.micros(step) == (step < 3 ? 2 : step < 5 ? 4 : 1));
    next += plan.micros(step);
    CHECK(plan.steps_for(next) == step + 1);
  }
  CHECK(config::BatchPlan(train, 2).micros(3) == 2);
  train.batch_schedule.clear();
  train.global_batch_size = 12;
  CHECK(config::BatchPlan(train, 1).micros(0) == 6);
  CHECK(config::BatchPlan(train, 3).micros(9) == 2);
  CHECK(config::BatchPlan(train, 3).first_micro(9) == 18);
}

TEST_CASE("batches: sizes that are no multiple of the micro-batch end with a smaller one, and nothing is left out", "[batches]") {
  config::TrainConfig train;
  train.batch_size = 8;
  train.batch_schedule = {{0, 20}, {3, 16}, {5, 2}};
  const config::BatchPlan plan(train, 1);
  CHECK(plan.uneven());
  CHECK(plan.piece() == 2);
  std::int64_t micro = 0, piece = 0;
  for (std::int64_t step = 0; step < 8; ++step) {
    CAPTURE(step);
    const std::int64_t rows = step < 3 ? 20 : step < 5 ? 16 : 2;
    CHECK(plan.sequences(step) == rows);
    CHECK(plan.first_micro(step) == micro);
    CHECK(plan.first_piece(micro) == piece);
    for (std::int64_t left = rows; left > 0; left -= 8) {
      CHECK(plan.micros_within(piece) == micro);
      ++micro;
      piece += std::min<std::int64_t>(left, 8) / 2;
      CHECK(plan.first_piece(micro) == piece);
    }
    CHECK(plan.micros(step) == micro - plan.first_micro(step));
    CHECK(plan.steps_for(micro) == step + 1);
    CHECK(plan.steps_for_pieces(piece) == step + 1);
    CHECK(plan.steps_for_pieces(piece + 1) == step + 2);
  }
  CHECK(config::BatchPlan(train, 2).sequences(0) == 10);
  CHECK(config::BatchPlan(train, 2).micros(0) == 2);
}

TEST_CASE("batches: an uneven update reads the samples of an even one, and has the loss and gradient of one batch of all", "[batches]") {
  config::Config config = tiny_config();
  config.data.shuffle = "torch";
  config.train.batch_size = 5;
  config.train.global_batch_size = 5;
  config.train.max_steps = 3;
  const auto run = [&config](std::int64_t batch_size, std::vector<std::int64_t>& samples) {
    config::Config own = config;
    own.train.batch_size = batch_size;
    Bench bench(own);
    const std::unique_ptr<Loader> loader = make_train_loader(own, {});
    const config::BatchPlan plan(own.train, 1);
    std::vector<double> numbers;
    for (std::int64_t step = 0; step < 3; ++step) {
      for (std::int64_t micro = plan.first_micro(step); micro < plan.first_micro(step + 1); ++micro) {
        const Batch batch = loader->batch(micro);
        CHECK(batch.tokens.size(0) == std::min<std::int64_t>(batch_size, 5 - batch_size * (micro - plan.first_micro(step))));
        samples.insert(samples.end(), batch.samples.begin(), batch.samples.end());
      }
      const StepResult result = bench.step(*loader, step, 0.0);
      CHECK(result.tokens == 5 * own.train.seq_len);
      numbers.push_back(result.ce);
      numbers.push_back(result.grad_norm);
    }
    return numbers;
  };
  std::vector<std::int64_t> whole_samples, split_samples;
  const std::vector<double> whole = run(5, whole_samples), split = run(2, split_samples);
  CHECK(whole_samples == split_samples);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    CHECK(split[i] == Approx(whole[i]).epsilon(1e-5));  // some 160 terms of fp32 (2^-24 each) in another order
  }
}

TEST_CASE("batches: a step of a batch schedule takes exactly its rows", "[batches]") {
  config::Config config = tiny_config();
  config.train.batch_size = 1;
  config.train.batch_schedule = {{0, 1}, {1, 3}};
  Bench scheduled(config);
  const at::Tensor tokens = random_tokens(4, 32, 3), labels = random_tokens(4, 32, 4);
  FixedLoader rows(tokens, labels, 1);
  CHECK(scheduled.step(rows, 0, 1e-3).tokens == 32);
  CHECK(scheduled.step(rows, 1, 1e-3).tokens == 96);
  Bench whole(tiny_config());
  FixedLoader first(tokens.narrow(0, 0, 1), labels.narrow(0, 0, 1), 1), rest(tokens.narrow(0, 1, 3), labels.narrow(0, 1, 3), 3);
  whole.step(first, 0, 1e-3);
  whole.step(rest, 0, 1e-3);
  for (std::size_t i = 0; i < whole.masters().size(); ++i) {
    CHECK(relative_difference(scheduled.masters()[i], whole.masters()[i]) < 1e-3);
  }
}

}  // namespace kf::test
