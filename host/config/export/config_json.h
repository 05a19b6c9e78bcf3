#pragma once
// The config.json that stands for the settings of a model: what config/huggingface reads, the other way round.

#include <string>
#include <vector>

#include "config/schema/config.h"
#include "config/tree/node.h"

namespace kf::config {

struct ConfigJson {
  Table json;                     // with model_type and architectures, without dtype
  std::string family;             // its model_type
  bool of_source = false;         // it is the given file, but for what the settings say otherwise
  std::vector<std::string> lost;  // settings of training alone that the family does not say as they are
  bool zero_biases = false;       // the family has biases, which the model has not: they are zeros
};

/// `source`: keys of the config.json that the model was made from (of its text part), null where there is none; it is changed where the
/// settings say something else. GPT-2 without biases (nanoGPT) is GPT-2 with zeros. Where that cannot be, and without one, a family is
/// looked for that says the same; `family` asks for one
/// ("" for any). The result is always read back: every setting that changes a number is then equal to that of `model`. Throws Code::config
/// naming the settings that no family has.
ConfigJson config_json_of(const ModelConfig& model, const Table* source, const std::string& family);

/// A config.json with its keys in alphabetical order, as Hugging Face writes it.
std::string to_text_file(const Table& json);

}  // namespace kf::config
