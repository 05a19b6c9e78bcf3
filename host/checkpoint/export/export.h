#pragma once
// A model as a folder that transformers loads: config.json, weights, tokenizer.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/export/shards.h"
#include "checkpoint/export/weight_source.h"
#include "config/export/config_json.h"
#include "core/fs.h"

namespace kf {

struct ExportOptions {
  std::string dtype = "bfloat16";                 // checkpoint.export_dtype: float32, bfloat16, float16
  std::string family = {};                        // model_type, "" for the source's or whichever has the settings
  std::uint64_t max_shard_bytes = 5'000'000'000;  // as transformers divides
};

/// "5GB", "500MB", "2GiB", "4096": bytes. Throws Code::config naming `option`.
std::uint64_t bytes_of(const std::string& text, const std::string& option);

/// What lies beside the weights.
struct ExportFiles {
  fs::path source = {};                             // folder with the config.json that the model was made from; empty: there is none
  std::vector<fs::path> tokenizer = {};             // its files
  std::map<std::string, std::string> more = {};     // name to content, where the folder has no file of the name yet
  std::map<std::string, std::string> changed = {};  // name to content, instead of what the folder would have
  std::optional<std::int64_t> bos = {};             // where no file says them
  std::vector<std::int64_t> ends = {};
};

struct Exported {
  config::ConfigJson config;
  Shards shards;
  std::size_t tensors = 0;
};

/// The config.json of an export of this model; throws as `config_json_of`.
config::ConfigJson export_config(const config::ModelConfig& settings, const fs::path& source, const std::string& family);

/// Writes `folder`, which is there whole or not at all. `model` need have no storage. Throws Code::config where no family has the settings,
/// or `folder` is something else than an earlier export, whose files are replaced and whose other files stay.
Exported export_model(const fs::path& folder, const config::ModelConfig& settings, Model& model, const WeightSource& weights,
                      const ExportFiles& files, const ExportOptions& options);

}  // namespace kf
