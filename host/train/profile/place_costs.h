#pragma once
// Where the time of steps went: sums of ranges by place, as a table for people.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/trace.h"

namespace kf {

class PlaceCosts {
 public:
  /// `trains`: of the thread that does the steps; what others do goes on beside them.
  void add(const ThreadEvents& thread, bool trains);
  /// A step is over that took so long, in ns.
  void add_step(std::int64_t took);

  std::int64_t steps() const { return steps_; }
  /// The ten places with the most time of their own, layers taken together and one by one, the ten operators, and what other threads did.
  std::string text() const;

 private:
  struct Cost {
    std::int64_t own = 0;  // ns
    std::int64_t calls = 0;
    std::map<std::string, std::int64_t> operators;  // own ns
    void add(const Cost& other);
  };
  using Costs = std::map<std::pair<std::string, std::string>, Cost>;  // by phase and label
  std::string table(const Costs& costs, const std::string& title) const;
  std::string operators() const;

  Costs training_, beside_;
  std::map<std::string, std::int64_t> calls_;  // of operators, in steps
  std::int64_t steps_ = 0;
  std::int64_t total_ = 0;
};

}  // namespace kf
