#pragma once
// Names changed by rules: checkpoint.name_map.

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kf {

/// Rules, each a regular expression (ECMAScript) and what stands in the place of all that it matches ($1: its first group), applied one
/// after the other. Copies share them.
class NameMap {
 public:
  NameMap() = default;
  /// Throws Code::config for an expression that is empty or does not compile, naming `key`, the setting it stands in.
  NameMap(const std::vector<std::pair<std::string, std::string>>& rules, const std::string& key);

  bool empty() const { return rules_ == nullptr; }
  std::string of(std::string name) const;

 private:
  struct Rules;
  std::shared_ptr<const Rules> rules_;  // null: names stay
};

}  // namespace kf
