#pragma once
// The head of a data set's card: which files its configurations and splits are.

#include <string>
#include <utility>
#include <vector>

namespace kf::hub {

struct CardConfig {
  std::string name;
  bool is_default = false;
  std::string data_dir;                                                  // "" for the repository itself
  std::vector<std::pair<std::string, std::vector<std::string>>> splits;  // name and patterns, in order; empty: by the files' names
};

/// `configs` of the YAML between the "---" lines at the top of a README.md; empty where there is none. Throws Code::data for YAML that does
/// not parse or has another shape.
std::vector<CardConfig> configs_of_card(const std::string& readme, const std::string& name);

}  // namespace kf::hub
