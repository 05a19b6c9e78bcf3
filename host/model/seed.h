#pragma once
// Seeds by name and number, so that no draw depends on the order of calls.

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <string_view>

namespace kf {

/// SplitMix64's finaliser over a and b: a seed for the b-th thing of a.
std::uint64_t mixed_seed(std::uint64_t a, std::uint64_t b);
/// A seed for the thing of this name: FNV-1a of the name, mixed with the run's seed.
std::uint64_t seed_of(std::uint64_t seed, std::string_view name);
/// A fresh generator on `device`.
at::Generator seeded_generator(at::Device device, std::uint64_t seed);

}  // namespace kf
