#pragma once
// Two pieces of work timed in turns: the ratio of their times holds on a busy machine, too.

#include <functional>
#include <string>

namespace kf::bench {

struct Work {
  std::string name;
  std::function<void()> body;
};

/// Prints one line: both times and "subject takes N times the reference". Each is run for about `seconds`, its fastest round counts.
void compare(const std::string& title, const Work& subject, const Work& reference, double seconds = 1.5);

}  // namespace kf::bench
