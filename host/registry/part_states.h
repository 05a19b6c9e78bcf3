#pragma once
// What the parts of a run keep in its checkpoints beside tensors.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "config/node.h"

namespace kf {

/// Parts add themselves when they are made. Those of one name are told apart by the order in which they are made, which the job decides.
class PartStates {
 public:
  struct Part {
    std::function<config::Node()> state;  // null: nothing to keep
    std::function<void(const config::Node&)> load;
    std::string key = {};  // given by `add`
  };
  using Kept = std::shared_ptr<const Part>;

  /// The part is kept until what this returns is gone. Its key is `name`, or "name#2", "name#3", ... where living parts have the earlier
  /// ones.
  [[nodiscard]] Kept add(const std::string& name, Part part);

  std::map<std::string, config::Node> state() const;
  /// Names in the log what no part takes. A part without a state stays as it is.
  void load(const std::map<std::string, config::Node>& states) const;

 private:
  std::vector<std::weak_ptr<const Part>> parts_;  // in order of `add`
};

}  // namespace kf
