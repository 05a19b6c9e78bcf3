#pragma once
// The one exception type of the program. Its code becomes the exit status.

#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "core/text.h"

namespace kf {

/// What went wrong, as the process's exit status. `machine`: a device failed, or a step stood still (train.stall_timeout_sec).
enum class Code : int { other = 1, config = 2, script = 3, communication = 4, data = 5, checkpoint = 6, machine = 7 };

/// A failure with a message for the user. Context lines are added while it unwinds ("while reading FILE").
class Error : public std::exception {
 public:
  Error(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  const char* what() const noexcept override { return message_.c_str(); }
  Code code() const noexcept { return code_; }

  /// Appends a line that says where this happened; returns itself, for `throw error.context(...)`.
  Error& context(std::string_view line) {
    message_.append("\n  ").append(line);
    return *this;
  }

 private:
  Code code_;
  std::string message_;
};

/// Throws an Error. `pattern` is as in `format`: name, value, bound, remedy.
template <class... Args>
[[noreturn]] void fail(Code code, std::string_view pattern, const Args&... args) {
  throw Error(code, format(pattern, args...));
}

}  // namespace kf

/// KF_CHECK(offset <= size, Code::data, "{}: header ends at {} of {} bytes", path, offset, size)
#define KF_CHECK(condition, code, ...) \
  do {                                 \
    if (!(condition)) [[unlikely]] {   \
      ::kf::fail((code), __VA_ARGS__); \
    }                                  \
  } while (false)
