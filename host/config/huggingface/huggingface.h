#pragma once
// A folder as Hugging Face's save_pretrained writes it: config.json becomes keys of [model].

#include <string>
#include <vector>

#include "config/tree/node.h"
#include "core/fs.h"

namespace kf::config {

/// Whether `path` is a folder with a config.json.
bool is_huggingface_folder(const fs::path& path);

/// The [model] keys that a config.json (transformers 4 or 5) stands for, with the file as their origin; in `problems` whatever of it is
/// not understood, named, and in `warnings`, where there are any, one line with the keys that were passed over because they change no
/// number. The names of the families are in `kf-host` errors for others.
Table model_of_config_json(const fs::path& file, std::vector<std::string>& problems, std::vector<std::string>* warnings = nullptr);
/// Of a file that is read already.
Table model_of_config_json(const Node& json, const fs::path& file, std::vector<std::string>& problems,
                           std::vector<std::string>* warnings = nullptr);

/// The keys of a config.json, or of its text_config in models that also see.
Table text_config_of(const fs::path& file);

/// "llama", from a config.json; of its text_config in models that also see. Throws Code::config when the file is no JSON or has no
/// model_type.
std::string model_type_of(const fs::path& file);

}  // namespace kf::config
