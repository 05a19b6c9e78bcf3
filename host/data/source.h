#pragma once
// From a path and a pattern to an open data set: what the files are decides how they are read.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/fs.h"
#include "data/dataset.h"
#include "data/selection.h"
#include "data/token_file.h"

namespace kf {

namespace config {
struct Config;
}
struct Registries;

/// Where data comes from, and the keys that said so (for messages).
struct SourceSpec {
  std::string path;                     // a file, or a folder
  std::string pattern;                  // of files below the folder
  std::string path_key;                 // "data.dataset_path", "data.datasets[0].path"
  std::string pattern_key;              // "data.file_pattern"
  std::vector<std::string> transforms;  // registered names, applied to every document of text in this order
};

/// How to read it.
struct SourceOptions {
  std::int64_t window = 0;  // train.seq_len + 1
  std::int64_t vocab_size = 0;
  std::optional<TokenType> token_type;
  std::string text_field;
  const config::Config* config = nullptr;  // for parts: tokenizers, transforms; outlives the call only
  const Registries* registries = nullptr;  // null: there are none
};

/// From [data], [train] and [model].
SourceOptions source_options(const config::Config& config, const Registries* registries);

/// Which part of it: everything, or one side of a hold-out.
struct SourcePart {
  double holdout = 0;  // 0: everything
  Side side = Side::training;
};

struct OpenSource {
  std::unique_ptr<Dataset> data;    // windows of seq_len + 1
  bool text = false;                // documents, each ending with
  std::optional<std::int64_t> eos;  // this id; unset where the data are ids already
  DocumentsPtr documents = {};      // what `data` cuts into windows; null where the data are ids already
};

/// Token files or text files, not both. Throws Code::data.
OpenSource open_source(const SourceSpec& spec, const SourceOptions& options, const SourcePart& part);

}  // namespace kf
