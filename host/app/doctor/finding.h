#pragma once
// One thing that the doctor looked at.

#include <string>
#include <vector>

namespace kf {

struct Finding {
  /// bad: it keeps a job from training. poor: it works, and could be better. fine: nothing to do.
  enum class State { fine, poor, bad };
  std::string name;
  State state = State::fine;
  std::string says;
  std::string remedy = {};  // where it is not fine
};

using Findings = std::vector<Finding>;

}  // namespace kf
