#pragma once
// A config.json as its text model has it. Models that also see keep that one under text_config.

#include <string>
#include <vector>

#include "config/tree/node.h"
#include "core/fs.h"

namespace kf::config::huggingface {

struct TextKeys {
  std::string type;                   // model_type
  Table keys;                         // as a text model's own file would have them
  bool sees = false;                  // it comes from a text_config
  std::vector<std::string> problems;  // of what stands around it
  std::vector<std::string> notes;     // likewise: keys that change no number
};

/// Throws Code::config when the file is no JSON or has no model_type.
TextKeys text_keys(const fs::path& file);
/// Of a file that is read already.
TextKeys text_keys(const Node& json, const fs::path& file);

}  // namespace kf::config::huggingface
