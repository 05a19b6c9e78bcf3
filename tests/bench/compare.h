#pragma once
// Two pieces of work timed in turns: the ratio of their times holds on a busy machine, too.

#include <functional>
#include <string>

namespace kf::bench {

struct Work {
  std::string name;
  std::function<void()> body;
};

/// Prints one line: time and peak of tensor memory of both, and the ratios subject / reference of both, of which it returns that of the
/// times. Each is run for about `seconds`; its fastest round counts.
double compare(const std::string& title, const Work& subject, const Work& reference, double seconds = 1.5);

}  // namespace kf::bench
