#include "app/line/failure.h"

#include <c10/util/Exception.h>

#include "core/credentials.h"
#include "core/error.h"
#include "core/out_of_memory.h"

namespace kf {
namespace {

/// "kf-host: message", or the message alone where it already starts so (reports of several problems do).
Failure failure(const std::string& text, Code code) {
  const std::string message = without_credentials(text);
  return {(message.starts_with("kf-host:") ? "" : "kf-host: ") + message, static_cast<int>(code)};
}

}  // namespace

Failure failure_of(const std::exception& error) {
  if (const auto* const own = dynamic_cast<const Error*>(&error)) {
    return failure(own->what(), own->code());
  }
  if (const auto* const device = dynamic_cast<const c10::AcceleratorError*>(&error)) {
    return failure(std::string("the device failed: ") + device->what_without_backtrace(), Code::machine);
  }
  if (const auto* const torch = dynamic_cast<const c10::Error*>(&error)) {
    const std::string memory = memory_failure_text(torch->what_without_backtrace());
    return failure(memory.empty() ? std::string("LibTorch: ") + torch->what_without_backtrace() : memory, Code::other);
  }
  return failure(failure_text(error), Code::other);
}

}  // namespace kf
