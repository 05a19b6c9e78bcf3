#include "model/own_draws.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>

#include <mutex>

#include "model/seed.h"

namespace kf {

OwnDraws::OwnDraws(at::Device device, std::uint64_t seed, std::string_view stream) : generators_{at::detail::getDefaultCPUGenerator()} {
  if (!device.is_cpu()) {
    generators_.push_back(at::globalContext().defaultGenerator(device));
  }
  for (at::Generator& generator : generators_) {
    const std::lock_guard<std::mutex> lock(generator.mutex());
    before_.push_back(generator.get_state());
    generator.set_current_seed(seed_of(seed, stream));
  }
}

OwnDraws::~OwnDraws() {
  for (std::size_t i = 0; i < generators_.size(); ++i) {
    const std::lock_guard<std::mutex> lock(generators_[i].mutex());
    generators_[i].set_state(before_[i]);
  }
}

}  // namespace kf
