#include "bench/steps_bench.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>

#include "bench/goals.h"
#include "bench/step_runs.h"
#include "bench/steps_case.h"
#include "core/error.h"
#include "core/processor.h"
#include "core/text.h"
#include "kernels/simd/isa.h"
#include "registry/registries.h"
#include "support/temp_dir.h"

namespace kf::bench {
namespace {

constexpr int kRounds = 5;
constexpr double kSlice = 2;  // seconds of each side in a round, about

/// glibc's malloc without pieces of the system's own (which are page-faulted anew in each step): no default, but what a reader of its
/// manual may set.
const std::map<std::string, std::string> kKeepsMemory{{"MALLOC_MMAP_MAX_", "0"}, {"MALLOC_TRIM_THRESHOLD_", "100000000000"}};

/// One side of a row.
struct Side {
  std::optional<Peer> peer;
  std::vector<double> rounds;  // the median step of each
  Trained last;

  void take(Trained slice) {
    rounds.push_back(median(slice.seconds));
    last = std::move(slice);
  }
  double ms() const { return 1e3 * median(rounds); }
};

/// Times of `other` / times of `subject`, the median of the rounds: a busy machine slows down both of a round.
double ratio(const Side& other, const Side& subject) {
  std::vector<double> all;
  for (std::size_t i = 0; i < subject.rounds.size(); ++i) {
    all.push_back(other.rounds[i] / subject.rounds[i]);
  }
  return median(all);
}

/// The largest difference of two lists of losses, as a share.
double difference(const std::vector<double>& own, const std::vector<double>& other) {
  KF_CHECK(own.size() == other.size(), Code::other, "{} losses against {}", own.size(), other.size());
  double worst = 0;
  for (std::size_t i = 0; i < own.size(); ++i) {
    worst = std::max(worst, std::abs(own[i] - other[i]) / std::abs(other[i]));
  }
  return worst;
}

/// Both keep eight bits in bf16, but not the same: the peer's weights and its loss are bf16, too (spacing 2^-8 of the value, rounded in
/// every step), those of kf-host fp32.
double allowed(const StepCase& one) { return one.precision == "fp32" ? 1e-4 : 2e-2; }

/// Steps of a slice, and how often kf-host writes a row: every tenth step as by default, in short slices more often.
OwnSteps slice_of(double seconds_of_a_step) {
  OwnSteps out;
  const std::int64_t steps = std::clamp<std::int64_t>(static_cast<std::int64_t>(kSlice / seconds_of_a_step), 4, 2000);
  out.interval = steps < 40 ? std::max<std::int64_t>(1, steps / 4) : 10;
  out.steps = steps / out.interval * out.interval;
  out.warmup = (3 + out.interval) / out.interval * out.interval;
  return out;
}

/// How much faster a step is wanted on this processor; 0 for nothing.
struct Wanted {
  double of_eager = 0, of_compiled = 0;
};

Wanted wanted_of(const StepCase& one) {
  const bool has_bf16 = simd::isa() == simd::Isa::avx512_bf16;
  if (one.model == "tiny") {
    return {5, 0};
  }
  if (one.precision == "fp32") {
    return {has_bf16 || simd::isa() == simd::Isa::avx512 ? 2.6 : 1.8, 0};
  }
  return has_bf16 ? Wanted{2.4, 2.0} : Wanted{};
}

void take_goals(const StepCase& one, const Side& own, const Side& eager, const Side& compiled, Goals& goals) {
  const std::string name = format("{} {} {}", one.model, one.precision, one.form_name());
  const Wanted wanted = wanted_of(one);
  const auto ratio_of = [&](const std::string& what, const Side& side, double least) {
    least > 0 ? goals.at_least(name + ": " + what, ratio(side, own), least, "x") : goals.seen(name + ": " + what, ratio(side, own), "x");
  };
  ratio_of("eager / kf-host", eager, wanted.of_eager);
  ratio_of("compiled / kf-host", compiled, wanted.of_compiled);
  goals.at_most(name + ": memory of kf-host / of eager", own.last.memory / eager.last.memory, 0.4, "x");
}

void print_peers(const Side& own, const Side& eager, const Side& kept, const Side& compiled, double worst) {
  std::printf(" %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.0f | %.2f | %.2f | %.1f | %.1f | %.0e |\n", own.ms(), eager.ms(), kept.ms(),
              compiled.ms(), ratio(eager, own), ratio(compiled, own), own.last.memory / 1e6, own.last.memory / eager.last.memory,
              own.last.first, eager.last.first, compiled.last.first, worst);
}

/// Why the losses are not equal; "" where they are.
std::string bench_case(const StepCase& one, const Registries& registries, Goals& goals) {
  const test::TempDir folder;
  write_case(one, folder.path(), registries);
  const Trained checked = run_own(folder.path(), {1, kChecked - 1, 1});
  const OwnSteps slice = slice_of(median(checked.seconds));
  std::printf("| %s | %s | %s |", one.model.c_str(), one.precision.c_str(), one.form_name());
  std::fflush(stdout);
  Side own, eager, kept, compiled;
  if (!has_peer()) {
    for (int round = 0; round < kRounds; ++round) {
      own.take(run_own(folder.path(), slice));
    }
    std::printf(" %.2f | | | | | | %.0f | | %.2f | | | |\n", own.ms(), own.last.memory / 1e6, own.last.first);
    return "";
  }
  double worst = 0;
  const auto start = [&](Side& side, const char* form, const std::map<std::string, std::string>& environment) {
    side.peer.emplace(folder.path(), form, environment);
    worst = std::max(worst, difference(checked.losses, side.peer->steps(1).losses));  // also waits until it is ready
  };
  start(eager, "eager", {});
  start(kept, "eager", kKeepsMemory);
  start(compiled, "compile", kKeepsMemory);
  for (int round = 0; round < kRounds; ++round) {
    own.take(run_own(folder.path(), slice));
    for (Side* const side : {&eager, &kept, &compiled}) {
      side->take(side->peer->steps(slice.steps));
    }
  }
  print_peers(own, eager, kept, compiled, worst);
  take_goals(one, own, eager, compiled, goals);
  std::fflush(stdout);
  return worst <= allowed(one) ? ""
                               : format("{} {} {}: losses differ by {} of their value, more than {}\n", one.model, one.precision,
                                        one.form_name(), worst, allowed(one));
}

void print_machine() {
  std::printf("%s, %s, %d threads\n", processor_name().c_str(), simd::name_of(simd::isa()), at::get_num_threads());
  if (!has_peer()) {
    std::printf("PyTorch is not in .deps/transformers-oracle (scripts/transformers.sh): its side is left out\n");
  }
  std::printf("\n");
}

}  // namespace

void bench_steps(const Registries& registries, const std::string& model, Goals& goals) {
  const std::vector<StepCase> cases = step_cases(model);
  KF_CHECK(!cases.empty(), Code::other, "bench steps: there is no model '{}'; take small, debug or tiny", model);
  print_machine();
  std::printf(
      "| model | type | form | kf-host, ms a step | eager | eager, memory kept | compiled | eager / kf-host | compiled / kf-host | "
      "memory, MB | of eager's | first step, s | eager's | compiled | losses differ by |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  std::string unequal;
  for (const StepCase& one : cases) {
    unequal += bench_case(one, registries, goals);
  }
  KF_CHECK(unequal.empty(), Code::other, "{}", unequal);
}

void bench_start(const Registries& registries, Goals& goals) {
  print_machine();
  constexpr int kTimes = 7;
  std::vector<double> help;
  for (int i = 0; i < 2 * kTimes; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    test::run({KF_HOST, "--help"});
    help.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::printf("`kf-host --help`: %.0f ms\n\n", 1e3 * median(help));
  goals.at_most("`kf-host --help`", 1e3 * median(help), 50, "ms");
  std::printf("| start to first step, s | kf-host | eager | eager / kf-host |\n|---|---|---|---|\n");
  for (const StepCase& one : step_cases("")) {
    if (one.precision != "fp32" || one.form != StepCase::Form::dense) {
      continue;
    }
    const test::TempDir folder;
    write_case(one, folder.path(), registries);
    std::vector<double> own, peer;
    for (int i = 0; i < kTimes; ++i) {
      own.push_back(run_own(folder.path(), {0, 1, 1}, {"--checkpoint.init_from=null"}).first);  // its weights are drawn
      if (has_peer() && i < 3) {
        peer.push_back(Peer(folder.path(), "eager").steps(1).first);
      }
    }
    std::printf("| %s | %.2f |", one.model.c_str(), median(own));
    goals.at_most(one.model + ": start to first step", median(own), one.model == "tiny" ? 0.4 : one.model == "small" ? 0.7 : 1.2, "s");
    has_peer() ? std::printf(" %.2f | %.1f |\n", median(peer), median(peer) / median(own)) : std::printf(" | |\n");
    std::fflush(stdout);
  }
}

}  // namespace kf::bench
