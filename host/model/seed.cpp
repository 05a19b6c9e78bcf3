#include "model/seed.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

namespace kf {

std::uint64_t mixed_seed(std::uint64_t a, std::uint64_t b) {
  std::uint64_t mixed = a + b * 0x9e3779b97f4a7c15;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

std::uint64_t seed_of(std::uint64_t seed, std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return mixed_seed(hash, seed);
}

at::Generator seeded_generator(at::Device device, std::uint64_t seed) {
  if (device.is_cpu()) {
    return at::detail::createCPUGenerator(seed);
  }
  at::Generator generator = at::globalContext().getAcceleratorHooksInterface(device.type()).getNewGenerator(device.index());
  generator.set_current_seed(seed);
  return generator;
}

}  // namespace kf
