#pragma once
// What the data commands work on: the sources of a job, or one that is named on the command line.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/command/commands.h"
#include "app/script/script_session.h"
#include "config/load/load.h"
#include "data/source/source.h"
#include "data/source/tokenized_text.h"
#include "registry/registries.h"

namespace kf {

/// Words of `kf-host data build|peek|verify|stats`.
struct DataCall {
  std::string target;                     // a job (.toml, .lua), files, or hf:NAME
  bool files = false;                     // the target is no job, whatever its name ends with
  std::vector<std::string> overrides;     // settings
  bool json = false;                      // --format json
  std::optional<std::int64_t> documents;  // --documents N
  std::optional<std::int64_t> rows;       // --rows N
  std::optional<std::int64_t> first;      // --first N
};

/// Throws Code::config with `usage` when nothing is named. `views`: whether --documents, --rows and --first mean something.
DataCall parse_data_call(const Arguments& args, const std::string& usage, bool views = false);

/// A source and how it is read.
struct DataSource {
  SourceSpec spec;
  SourceOptions options;
  std::string what() const;  // "data.dataset_path = \"corpus\""
};

/// Training sources, then evaluation's own, each once. `build`: whether text that is not in the cache is tokenized when it is opened.
std::vector<DataSource> data_sources(const config::Config& config, const Registries* registries, bool build);

/// For `kf-host config check`: the files are there and of a kind that can be read, token files fit the vocabulary's type, the tokenizer can
/// be read. Data sets of the hub are not asked for. Throws what a run would.
void check_data(const config::Config& config);

class DataJob {
 public:
  /// Reads the settings; a script is run for its table and its parts.
  explicit DataJob(const DataCall& call);

  /// Throws Code::data when there are none.
  std::vector<DataSource> sources(bool build) const;
  bool is_job() const { return is_job_; }
  const config::Config& config() const { return loaded_->config; }
  const Registries& registries() const { return session_.registries(); }

 private:
  ScriptSession session_;
  std::optional<config::Loaded> loaded_;
  bool is_job_ = false;
};

}  // namespace kf
