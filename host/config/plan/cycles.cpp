#include "config/plan/cycles.h"

#include <algorithm>

namespace kf::config {
namespace {

/// The multiples of `length` below `total`. Shares are added up before they become steps: four quarters of 101 steps are four cycles.
std::vector<std::int64_t> multiples(const Duration& length, std::int64_t total) {
  std::vector<std::int64_t> out{0};
  const std::int64_t steps = length.of(total);
  while (steps > 0) {
    const auto number = static_cast<std::int64_t>(out.size());
    const std::int64_t next = length.is_share() ? Duration::of_share(length.share() * static_cast<double>(number)).of(total)
                                                : (total - out.back() > steps ? out.back() + steps : total);
    if (next >= total) {
      break;
    }
    out.push_back(next);
  }
  return out;
}

}  // namespace

std::vector<std::int64_t> cycle_ends(const std::vector<Duration>& lengths, std::int64_t total) {
  std::vector<std::int64_t> out;
  double shares = 0;
  std::int64_t steps = 0;
  for (const Duration& length : lengths) {
    shares += length.share();
    steps += std::min(length.steps(), total + 1);  // a length past the end is told from its sum; it must not overflow
    out.push_back(steps + Duration::of_share(shares).of(total));
  }
  return out;
}

bool gives_cycles(const SchedulerConfig& s) { return !(s.cycles == Durations(1)); }
bool gives_cycle_length(const SchedulerConfig& s) { return !(s.cycle_length == Durations(0)); }

std::vector<std::int64_t> cycle_starts(const SchedulerConfig& s, std::int64_t total) {
  std::vector<std::int64_t> out{0};
  if (gives_cycle_length(s)) {
    if (!s.cycle_length.is_list()) {
      return multiples(s.cycle_length.one(), total);
    }
    const std::vector<std::int64_t> ends = cycle_ends(s.cycle_length.items(), total);
    out.insert(out.end(), ends.begin(), ends.end());
  } else if (s.cycles.is_list()) {
    for (const Duration& start : s.cycles.items()) {
      out.push_back(start.of(total));
    }
  } else {
    const std::int64_t cycles = s.cycles.one().steps();
    for (std::int64_t i = 1; i < cycles; ++i) {
      out.push_back(total * i / cycles);
    }
  }
  // What begins at the end of the schedule or behind it never begins; lengths that fill it exactly leave nothing over.
  while (out.size() > 1 && out.back() >= total) {
    out.pop_back();
  }
  return out;
}

}  // namespace kf::config
