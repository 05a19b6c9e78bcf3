#include "core/name_map.h"

#include <regex>

#include "core/error.h"
#include "core/text.h"

namespace kf {

struct NameMap::Rules {
  std::vector<std::pair<std::regex, std::string>> all;
};

NameMap::NameMap(const std::vector<std::pair<std::string, std::string>>& rules, const std::string& key) {
  auto compiled = std::make_shared<Rules>();
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const auto& [from, to] = rules[i];
    KF_CHECK(!from.empty(), Code::config, "{}[{}].from is empty; it must match part of a name", key, i);
    try {
      compiled->all.emplace_back(std::regex(from, std::regex::ECMAScript | std::regex::optimize), to);
    } catch (const std::regex_error& e) {
      fail(Code::config, "{}[{}].from = {} is no regular expression: {}", key, i, kf::quoted(from), e.what());
    }
  }
  if (!rules.empty()) {
    rules_ = std::move(compiled);
  }
}

std::string NameMap::of(std::string name) const {
  if (rules_ != nullptr) {
    for (const auto& [from, to] : rules_->all) {
      name = std::regex_replace(name, from, to);
    }
  }
  return name;
}

}  // namespace kf
