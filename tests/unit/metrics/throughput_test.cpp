#include "metrics/throughput.h"

#include <cmath>
#include <vector>

#include "core/log.h"
#include "metrics/memory.h"
#include "metrics/numbers.h"
#include "metrics/peak.h"

#include <catch2/catch.hpp>  // after LibTorch, whose CHECK it replaces

using namespace kf;

TEST_CASE("throughput: tokens and flops of a window, without pauses", "[metrics]") {
  double now = 100;
  Throughput meter(2e6, 1e9, [&] { return now; });
  meter.add(600);
  meter.add(400);
  now += 2;
  meter.pause();
  now += 50;
  meter.resume();
  now += 3;
  const Rate rate = meter.take();
  CHECK(rate.tokens_per_sec == 200);
  CHECK(rate.mfu == Approx(200 * 2e6 / 1e9));
  CHECK(meter.seconds() == 55);
  now += 1;
  CHECK(meter.take().tokens_per_sec == 0);
  CHECK(meter.take().tokens_per_sec == 0);  // no time has passed
}

TEST_CASE("throughput: an unknown peak gives no share", "[metrics]") {
  double now = 0;
  Throughput meter(2e6, 0, [&] { return now; });
  meter.add(10);
  now = 1;
  CHECK(meter.take().mfu == 0);
}

TEST_CASE("throughput: peaks of GPUs by name", "[metrics]") {
  const auto tflops = [](const char* name, int major = 0) { return cuda_peak(name, major).flops / 1e12; };
  CHECK(tflops("NVIDIA H100 80GB HBM3") == 989);
  CHECK(tflops("NVIDIA H100 PCIe") == 756);
  CHECK(tflops("NVIDIA H200") == 989);
  CHECK(tflops("NVIDIA A100-SXM4-80GB") == 312);
  CHECK(tflops("NVIDIA A10G") == 125);
  CHECK(tflops("NVIDIA L40S") == 362);
  CHECK(tflops("NVIDIA GeForce RTX 4090") == 330);
  CHECK(tflops("NVIDIA B200") == 2250);
  CHECK(tflops("NVIDIA H800") == 989);
  const std::size_t warnings = log::count(log::Level::warn);
  CHECK(tflops("NVIDIA Z1", 9) == 989);
  CHECK(tflops("NVIDIA Z1", 8) == 312);
  CHECK(tflops("NVIDIA Z1", 7) == 100);
  CHECK(log::count(log::Level::warn) == warnings + 3);
}

TEST_CASE("throughput: the peak of the CPU is measured", "[metrics]") {
  const Peak fp32 = measure_cpu_peak(at::kFloat);
  CHECK(fp32.flops > 1e8);
  CHECK(fp32.flops < 1e15);
  CHECK(fp32.source == "measured, fp32");
  CHECK(measure_cpu_peak(at::kBFloat16).flops > 1e8);
}

TEST_CASE("memory: the resident set is that of this process", "[metrics]") {
  const std::int64_t before = resident_bytes();
  REQUIRE(before > 1'000'000);
  const std::vector<char> block(64 << 20, 'x');
  CHECK(resident_bytes() - before > 48 << 20);
  CHECK(block.back() == 'x');
}

TEST_CASE("metrics: perplexity and smoothing follow the golden tables", "[metrics]") {
  CHECK(perplexity(0) == 1);
  CHECK(perplexity(1.5) == Approx(4.4816890703380645).epsilon(1e-12));
  CHECK(perplexity(25) == Approx(485165195.4097903).epsilon(1e-12));
  CHECK(std::isnan(perplexity(std::nan(""))));
  Smoothed smoothed;
  const std::vector<double> values{4.0, 3.5, 3.7, 3.0, 2.5, 10.0, 2.4};
  const std::vector<double> expected{4.0, 3.95, 3.925, 3.8325, 3.69925, 4.329325, 4.1363925};
  for (std::size_t i = 0; i < values.size(); ++i) {
    CHECK(smoothed.add(values[i]) == Approx(expected[i]).epsilon(1e-12));
  }
}
