#include "core/out_of_memory.h"

#include <new>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "core/text.h"

namespace kf {
namespace {

constexpr std::string_view kRemedy =
    "a smaller train.batch_size with more train.grad_accum_steps, a smaller train.seq_len, train.activation_checkpointing = \"full\" or a "
    "smaller model need less; so do shorter records and fewer readers of data. A limit of the shell (ulimit -v), of a container or of a "
    "batch system may be what is reached";

}  // namespace

std::string failure_text(const std::exception& error) {
  const std::string_view text = error.what();
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return format("out of memory: {}", kRemedy);
  }
  if (dynamic_cast<const std::length_error*>(&error) != nullptr) {
    return format("out of memory, or a size beyond all memory ({}): {}", text, kRemedy);
  }
  if (const auto* system = dynamic_cast<const std::system_error*>(&error);
      system != nullptr && system->code() == std::errc::resource_unavailable_try_again) {
    return format(
        "the system gives no further thread ({}): the memory, or the number of processes and threads, is limited (ulimit -v, "
        "ulimit -u, a container or a batch system)",
        text);
  }
  const std::string memory = memory_failure_text(text);
  return memory.empty() ? std::string(text) : memory;
}

std::string memory_failure_text(std::string_view message) {
  constexpr std::string_view kTorch = "DefaultCPUAllocator: can't allocate memory: you tried to allocate ";
  if (const std::size_t at = message.find(kTorch); at != std::string_view::npos) {
    const std::string_view rest = message.substr(at + kTorch.size());
    return format("out of memory: {} bytes for a tensor could not be had; {}", rest.substr(0, rest.find(' ')), kRemedy);
  }
  return "";
}

}  // namespace kf
