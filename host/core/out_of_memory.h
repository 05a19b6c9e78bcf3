#pragma once
// One message for memory that cannot be had, wherever it is noticed.

#include <exception>
#include <string>

namespace kf {

/// What an exception says; where it says that no memory is left (std::bad_alloc, LibTorch's allocators), what helps.
std::string failure_text(const std::exception& error);

}  // namespace kf
