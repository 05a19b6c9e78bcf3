#include "checkpoint/values.h"

namespace kf {

const config::Node& value_at(const config::Table& values, const std::string& key) {
  static const config::Node nothing;
  const config::Node* const found = values.find(key);
  return found != nullptr ? *found : nothing;
}

std::map<std::string, config::Node> values_under(const config::Table& values, const std::string& group) {
  const std::string start = group + "/";
  std::map<std::string, config::Node> out;
  for (const auto& [key, value] : values) {
    if (key.starts_with(start)) {
      out[key.substr(start.size())] = value;
    }
  }
  return out;
}

void put_under(config::Table& values, const std::string& group, const std::map<std::string, config::Node>& more) {
  for (const auto& [name, value] : more) {
    values[group + "/" + name] = value;
  }
}

}  // namespace kf
