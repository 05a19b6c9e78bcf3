#pragma once
// The classes of transformers 5 that load a family: "architectures" of a config.json.

#include <string>
#include <vector>

namespace kf::config {

/// "LlamaForCausalLM" of "llama"; "" for a family without one.
std::string class_of_family(const std::string& model_type);
/// The families that an export tries for a model of one's own.
struct FamiliesByUse {
  std::vector<std::string> first;   // in this order
  std::vector<std::string> common;  // where they are near
  std::vector<std::string> others;
};
FamiliesByUse families_by_use();

}  // namespace kf::config
