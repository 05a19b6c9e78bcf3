#pragma once
// From files and arguments to a checked Config: defaults, `extends`, TOML, recipe, command line; every problem at once.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "config/node.h"
#include "config/part.h"
#include "core/fs.h"

namespace kf::config {

/// One fault of a job, ready to print.
struct Problem {
  Origin origin;                    // first key concerned
  std::string message;              // "train.seq_len (4096) exceeds model.max_seq_len (2048); raise ... or lower ..."
  std::vector<Origin> others = {};  // further keys of the same rule
};

/// Every problem and warning of one loading, problems by file and line, the command line last.
struct Report {
  std::vector<Problem> problems;
  std::vector<std::string> warnings;
};

/// All problems, "3 problems in the job" first (main puts "kf-host: " before it), each with its place and source line (see
/// docs/running.md).
std::string to_text(const Report& report);

/// What was asked for, before checking.
struct Request {
  fs::path job;                        // .toml, or empty for defaults alone
  std::vector<std::string> overrides;  // "--section.key=value", "--flag"; anything else becomes a problem
  std::optional<Node> recipe;          // what a Lua script returned, a table; its `extends` is relative to the folder of origin.file
  std::optional<std::int64_t> world;   // number of ranks, where known: also runs the rules that need it
  bool files_must_exist = true;        // `check` and runs; not `show`
};

/// The job with origins kept.
struct Loaded {
  Config config;
  Table merged;               // the layers as one tree, with origins
  std::vector<Table> layers;  // lowest first, for `config explain`
  Report report;              // warnings only, when returned by `load_or_fail`
};

/// Never throws for a faulty job: the faults are in `report` (config then holds what could be read).
Loaded load(const Request& request, const Catalog& catalog);

/// Throws Error{Code::config} with the whole report as its message when there is any problem. Logs the warnings.
Loaded load_or_fail(const Request& request, const Catalog& catalog);

}  // namespace kf::config
