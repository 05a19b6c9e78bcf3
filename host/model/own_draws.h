#pragma once
// Random numbers of what stands beside training: evaluation, generation, metrics.

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace kf {

/// While one exists, the default generators (kf.rng, and whatever draws without a generator of its own) of the CPU and of `device` give
/// numbers that `seed` and `stream` decide, from their beginning; then they go on from where they were. So training has the same draws with
/// and without, and what is done twice draws the same twice.
class OwnDraws {
 public:
  OwnDraws(at::Device device, std::uint64_t seed, std::string_view stream);
  ~OwnDraws();
  OwnDraws(const OwnDraws&) = delete;
  OwnDraws& operator=(const OwnDraws&) = delete;

 private:
  std::vector<at::Generator> generators_;
  std::vector<at::Tensor> before_;  // their states
};

}  // namespace kf
