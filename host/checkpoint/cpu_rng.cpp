#include "checkpoint/cpu_rng.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <cstring>
#include <mutex>

#include "core/error.h"

namespace kf {

std::string cpu_rng_state() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();  // a handle to the one generator
  const std::lock_guard lock(generator.mutex());
  const at::Tensor state = generator.get_state();
  return {static_cast<const char*>(state.const_data_ptr()), state.nbytes()};
}

void set_cpu_rng_state(const std::string& bytes, const fs::path& checkpoint) {
  const std::size_t size = cpu_rng_state().size();
  KF_CHECK(bytes.size() == size, Code::checkpoint, "{}: the random generator's state has {} bytes instead of {}", checkpoint, bytes.size(),
           size);
  const at::Tensor state = at::empty({static_cast<std::int64_t>(size)}, at::kByte);
  std::memcpy(state.mutable_data_ptr(), bytes.data(), size);
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

}  // namespace kf
