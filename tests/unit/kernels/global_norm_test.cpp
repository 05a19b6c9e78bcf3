// The norm of all gradients.

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cmath>

#include "kernels/global_norm/global_norm.h"
#include "support/gradients.h"
#include "support/tiny.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

namespace kf::test {
namespace {

std::vector<at::Tensor> some() {
  std::vector<at::Tensor> out;
  std::uint64_t seed = 1;
  for (const std::int64_t n : {0, 1, 17, 4095, 4096, 4097, 300001}) {
    out.push_back(drawn({n}, seed, at::kFloat));
    out.push_back(drawn({n}, seed + 1, at::kFloat).to(at::kBFloat16));
    seed += 2;
  }
  out.push_back(drawn({30, 50}, seed, at::kFloat).t());
  return out;
}

}  // namespace

TEST_CASE("global norm: fp32 and bf16 together, as in double", "[norm]") {
  double squares = 0;
  for (const at::Tensor& tensor : some()) {
    squares += tensor.to(at::kDouble).square().sum().item<double>();
  }
  const at::Tensor norm = global_norm(some());
  CHECK(norm.scalar_type() == at::kFloat);
  // All squares are positive, and a lane adds 4096 / 16 of them at most (1024 where vectors are of 4): as many roundings, half of it for
  // the root.
  CHECK(norm.item<double>() == Approx(std::sqrt(squares)).epsilon(600 * std::ldexp(1.0, -24)));
  CHECK(global_norm({}).item<double>() == 0);
}

TEST_CASE("global norm: the same bits for one and for two threads, and fp16 through LibTorch", "[norm]") {
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const at::Tensor one = global_norm(some());
  at::set_num_threads(2);
  const at::Tensor two = global_norm(some());
  at::set_num_threads(threads);
  CHECK(at::equal(one, two));
  const at::Tensor half = drawn({100}, 1).to(at::kHalf);
  CHECK(global_norm({half}).item<double>() == Approx(half.to(at::kDouble).norm().item<double>()).epsilon(1e-5));
}

}  // namespace kf::test
