// Spikes, and numbers that are not finite.

#include <ATen/ATen.h>

#include <limits>

#include "support/tiny.h"
#include "train/step/update_guard.h"

#include <catch2/catch.hpp>

namespace kf::test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

config::TrainConfig spiky() {
  config::TrainConfig train;
  train.skip_spikes = true;
  train.skip_window = 8;
  return train;
}

}  // namespace

TEST_CASE("guard: a spike of loss or norm is skipped, enters the memory, and becomes normal", "[guard]") {
  UpdateGuard guard(spiky());
  std::int64_t step = 0;
  CHECK(guard.judge(100, 1, step++).skip.empty());  // too little is known
  for (int i = 0; i < 8; ++i) {
    CHECK(guard.judge(2 + 0.01 * i, 1 + 0.01 * i, step++).skip.empty());
  }
  CHECK(guard.judge(2.1, 5, step++).skip.find("gradient norm 5 is a spike") == 0);
  const UpdateGuard::Verdict verdict = guard.judge(50, 1, step++);
  CHECK(verdict.skip.find("loss 50 is a spike") == 0);
  CHECK(verdict.abort.empty());
  int skipped = 1;
  while (!guard.judge(50, 1, step++).skip.empty()) {
    REQUIRE(++skipped < 8);
  }
}

TEST_CASE("guard: NaN and infinity are skipped or end the run, and never enter the memory", "[guard]") {
  config::TrainConfig train = spiky();
  train.on_inf = "abort";
  UpdateGuard guard(train);
  for (int i = 0; i < 8; ++i) {
    guard.judge(2 + 0.01 * i, 1, i);
  }
  const config::Node before = guard.state();
  CHECK(guard.judge(kNan, 1, 8).abort.empty());
  CHECK_FALSE(guard.judge(2, kNan, 9).skip.empty());
  for (const auto& [loss, norm] : {std::pair(kInf, kNan), std::pair(kNan, kInf), std::pair(-kInf, 1.0), std::pair(2.0, kInf)}) {
    CAPTURE(loss, norm);
    CHECK(guard.judge(loss, norm, 11).abort.find("train.on_inf = \"abort\"") != std::string::npos);
  }
  CHECK(*before.table()->find("losses") == *guard.state().table()->find("losses"));
}

TEST_CASE("guard: on_nan and on_inf act each by itself, also where a hook left the update out", "[guard]") {
  config::TrainConfig train;
  train.on_nan = "abort";
  UpdateGuard nan(train);
  CHECK(nan.judge(kInf, kInf, 0).abort.empty());
  CHECK(nan.judge(kInf, kNan, 1).abort.find("train.on_nan = \"abort\"") != std::string::npos);
  CHECK(nan.judge(kNan, 1, 2).abort.find("train.on_nan") != std::string::npos);
  CHECK(nan.judge(2, 1, 3).abort.empty());

  config::Config config = tiny_config();
  config.train.on_inf = "abort";
  Bench bench(config);
  FixedLoader data(random_tokens(16, 32, 3), random_tokens(16, 32, 4), 2);
  Stepper::Callbacks callbacks;
  callbacks.micro_end = [&] { bench.model->parameters().front()->value.mutable_grad().fill_(std::numeric_limits<float>::infinity()); };
  callbacks.backward_end = [](StepResult& result) {
    result.skipped = "by a hook";
    return false;
  };
  const StepResult result = bench.stepper->run(data, 0, 1e-3, callbacks);
  CHECK(result.skipped == "by a hook");
  CHECK(result.abort.find("train.on_inf = \"abort\"") != std::string::npos);
}

TEST_CASE("guard: too many skipped updates in a row end the run", "[guard]") {
  config::TrainConfig train = spiky();
  train.skip_max_consecutive = 3;
  UpdateGuard limited(train);
  CHECK(limited.judge(kNan, 1, 0).abort.empty());
  CHECK(limited.judge(kNan, 1, 1).abort.empty());
  CHECK(limited.judge(kNan, 1, 2).abort.find("3 updates in a row were skipped up to step 3") == 0);
  UpdateGuard by_default{config::TrainConfig()};
  for (int i = 0; i < 9; ++i) {
    CHECK(by_default.judge(kNan, 1, i).abort.empty());
  }
  CHECK(by_default.judge(kNan, 1, 9).abort.find("not finite for 10 steps in a row") != std::string::npos);
}

TEST_CASE("guard: its memory survives a restart", "[guard]") {
  UpdateGuard straight(spiky());
  for (int i = 0; i < 7; ++i) {
    straight.judge(2 + 0.125 * (i % 3), 1, i);
  }
  UpdateGuard resumed(spiky());
  resumed.load(straight.state());
  for (const double loss : {2.1, 9.0, 2.2}) {
    CHECK(straight.judge(loss, 1, 7).skip == resumed.judge(loss, 1, 7).skip);
  }
}

TEST_CASE("guard: a skipped spike leaves weights and moments as they were, and the data goes on", "[guard]") {
  config::Config config = tiny_config();
  config.train.skip_spikes = true;
  config.train.skip_window = 8;  // judges from the fifth step on
  Bench bench(config);
  FixedLoader data(random_tokens(16, 32, 3), random_tokens(16, 32, 4), 2);
  for (std::int64_t step = 0; step < 4; ++step) {
    CHECK(bench.step(data, step, 1e-3).skipped.empty());
  }
  bench.model->parameters().back()->value.data().mul_(1000);  // the head: the loss explodes
  const std::vector<at::Tensor> before = bench.masters();
  const at::Tensor moment = bench.optimizer->state().tensors.begin()->second.clone();
  CHECK(bench.step(data, 4, 1e-3).skipped.find("is a spike") != std::string::npos);
  CHECK(bitwise_equal(bench.masters(), before));
  CHECK(at::equal(moment, bench.optimizer->state().tensors.begin()->second));
}

}  // namespace kf::test
