#pragma once
// From a path and a pattern to an open data set: what the files are decides how they are read.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/fs.h"
#include "data/documents/data_record.h"
#include "data/documents/selection.h"
#include "data/file/token_file.h"
#include "data/read/reader.h"
#include "data/sequence/dataset.h"

namespace kf {

namespace config {
struct Config;
}
struct Registries;

/// Where data comes from, and the keys that said so (for messages).
struct SourceSpec {
  std::string path;                     // files, a folder, a glob, a brace list
  std::string pattern;                  // of files below the folder
  std::string path_key;                 // "data.dataset_path", "data.datasets[0].path"
  std::string pattern_key;              // "data.file_pattern"
  std::vector<std::string> transforms;  // registered names, applied to every document of text in this order
  std::string hf_name = {};             // a data set of the hub, where `path` is empty
  std::string hf_config = {};
  std::string hf_split = "train";
  std::int64_t max_documents = 0;  // of text; 0 for all
  std::int64_t max_tokens = 0;
  std::string limit_key = "data";  // "data.datasets[0]": whose limits these are
};

/// data.dataset_path or data.hf_dataset_name.
SourceSpec training_source(const config::Config& config);
/// data.datasets[i], which is no registered data set.
SourceSpec mixture_source(const config::Config& config, std::size_t i);
/// eval.dataset_path or eval.hf_dataset_name.
SourceSpec evaluation_source(const config::Config& config);
/// eval.datasets[i].
SourceSpec evaluation_source(const config::Config& config, std::size_t i);

/// How to read it.
struct SourceOptions {
  std::int64_t window = 0;  // train.seq_len + 1
  std::int64_t vocab_size = 0;
  std::optional<TokenType> token_type;
  ReadOptions read;                        // which text a record has
  Windows windows = Windows::apart;        // of data.pack_method = "concat"
  bool build = true;                       // false: text that is not in the cache yet is an error
  const config::Config* config = nullptr;  // for parts: tokenizers, transforms; outlives the call only
  const Registries* registries = nullptr;  // null: there are none
};

/// From [data], [train] and [model].
SourceOptions source_options(const config::Config& config, const Registries* registries);
/// With what data.datasets[i] says itself.
SourceOptions mixture_options(const config::Config& config, const Registries* registries, std::size_t i);
/// How an evaluation cuts a stream: every label once where all of it is read (steps = -1); a number of batches takes the windows that
/// training takes, as the reference does.
Windows evaluation_windows(std::int64_t steps);
/// For eval.dataset_path or eval.hf_dataset_name.
SourceOptions evaluation_options(const config::Config& config, const Registries* registries);
/// The same with what eval.datasets[i] says itself.
SourceOptions evaluation_options(const config::Config& config, const Registries* registries, std::size_t i);

/// Which part of it: everything, or one side of a hold-out.
struct HoldOut {
  double holdout = 0;  // 0: everything
  Side side = Side::training;
};

struct OpenSource {
  std::unique_ptr<Dataset> data;    // sequences by data.pack_method
  bool text = false;                // documents, each ending with
  std::optional<std::int64_t> eos;  // this id; unset where the data are ids already
  DocumentsPtr documents = {};      // what `data` cuts or packs; null where the data are ids already
  std::vector<FilePrint> prints = {};
};

/// The files, in order. Throws Code::data when there are none.
SourceFiles find_files(const SourceSpec& spec, const config::Config& config);

/// Token files or text of any kind, not both. Text that is no plain file read as bytes goes through the token cache, which is built when it
/// is missing. Throws Code::data.
OpenSource open_source(const SourceSpec& spec, const SourceOptions& options, const HoldOut& part);

}  // namespace kf
