#pragma once
// What the parts of a run keep in its checkpoints beside tensors.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "config/tree/node.h"

namespace kf {

/// Parts add themselves when they are made. Those of one name are told apart by the order in which they are made, which the job decides.
class PartStates {
 public:
  struct Kept {
    std::function<config::Node()> state;  // null: nothing to keep
    std::function<void(const config::Node&)> load;
    std::string key = {};  // given by `add`
  };
  using Handle = std::shared_ptr<const Kept>;

  /// The part is known until what this returns is gone. Its key is `name`, or "name#2", "name#3", ... where living parts have the earlier
  /// ones.
  [[nodiscard]] Handle add(const std::string& name, Kept kept);

  /// A null where a part has nothing to keep now, so that a roll-back knows it from a part that the checkpoint is older than.
  std::map<std::string, config::Node> state() const;
  /// To parts that were just made: nulls are not given. Names in the log what no part takes.
  void load(const std::map<std::string, config::Node>& states) const;
  /// To parts that have gone on since: nulls, too, so that none keeps what came later.
  void roll_back(const std::map<std::string, config::Node>& states) const;

 private:
  void give(const std::map<std::string, config::Node>& states, bool nulls) const;

  std::vector<std::weak_ptr<const Kept>> parts_;  // in order of `add`
};

}  // namespace kf
