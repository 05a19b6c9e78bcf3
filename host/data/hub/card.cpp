#include "data/hub/card.h"

#include <yaml-cpp/yaml.h>

#include "core/error.h"
#include "core/text.h"

namespace kf::hub {
namespace {

std::string front_matter(const std::string& readme) {
  const std::string text = readme.starts_with("\xef\xbb\xbf") ? readme.substr(3) : readme;
  std::string out;
  const std::vector<std::string> lines = split(text, '\n');
  if (lines.empty() || trim(lines[0]) != "---") {
    return "";
  }
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (trim(lines[i]) == "---") {
      return out;
    }
    out += lines[i] + '\n';
  }
  return "";
}

std::vector<std::string> patterns_of(const YAML::Node& node) {
  if (node.IsScalar()) {
    return {node.as<std::string>()};
  }
  std::vector<std::string> out;
  for (const YAML::Node& one : node) {
    out.push_back(one.as<std::string>());
  }
  return out;
}

/// A pattern, patterns, or a list of {split, path}.
void add_splits(const YAML::Node& files, CardConfig& config) {
  if (files.IsMap()) {
    for (const auto& entry : files) {
      config.splits.emplace_back(entry.first.as<std::string>(), patterns_of(entry.second));
    }
    return;
  }
  if (files.IsSequence() && files.size() > 0 && files[0].IsMap()) {
    for (const YAML::Node& entry : files) {
      config.splits.emplace_back(entry["split"].as<std::string>(), patterns_of(entry["path"]));
    }
    return;
  }
  config.splits.emplace_back("train", patterns_of(files));
}

CardConfig config_of(const YAML::Node& node) {
  CardConfig out;
  out.name = node["config_name"].as<std::string>("default");
  out.is_default = node["default"].as<bool>(false);
  out.data_dir = node["data_dir"].as<std::string>("");
  if (const YAML::Node files = node["data_files"]) {
    add_splits(files, out);
  }
  return out;
}

}  // namespace

std::vector<CardConfig> configs_of_card(const std::string& readme, const std::string& name) {
  std::vector<CardConfig> out;
  try {
    const YAML::Node head = YAML::Load(front_matter(readme));
    if (!head.IsMap() || !head["configs"]) {
      return out;
    }
    for (const YAML::Node& node : head["configs"]) {
      out.push_back(config_of(node));
    }
  } catch (const YAML::Exception& error) {
    fail(Code::data, "{}: the head of README.md (line {}): {}", name, error.mark.line + 2, error.msg);
  }
  return out;
}

}  // namespace kf::hub
