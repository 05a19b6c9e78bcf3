#pragma once
// One message for memory that cannot be had, wherever it is noticed.

#include <exception>
#include <string>
#include <string_view>

namespace kf {

/// What an exception says; where it says that no memory is left (std::bad_alloc, LibTorch's allocators), what helps.
std::string failure_text(const std::exception& error);

/// Of a message of LibTorch's, taken without its backtrace (which takes a millisecond to make): what helps; "" where memory is not what is
/// missing.
std::string memory_failure_text(std::string_view message);

}  // namespace kf
