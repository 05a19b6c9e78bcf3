#pragma once
// What a page knows of a run.

#include <cstddef>
#include <string>
#include <vector>

#include "report/page/json_writer.h"
#include "report/read/row_file.h"
#include "report/read/run_list.h"

namespace kf::report {

/// A run of a page.
struct ShownRun {
  RunSummary summary;
  std::string key;    // its folder, relative to what the page is of: no two are alike
  std::string label;  // its name, or the key where another one has that name
};
/// `runs` as a page shows them. `root`: what keys are relative to.
std::vector<ShownRun> shown_runs(std::vector<RunSummary> runs, const fs::path& root);

/// Members of the object that `json` is in: what the list of runs has. "version" changes whenever the run does.
void write_summary(JsonWriter& json, const ShownRun& run);

/// Members likewise: everything else. What cannot be read becomes a sentence in "problems". `rows` are read up to now.
void write_details(JsonWriter& json, const ShownRun& run, RowFile& rows, std::size_t buckets);

/// "defaults": {key: value} of every setting that the program knows, as `write_details` writes values.
void write_defaults(JsonWriter& json);

/// "numbers": {name: {"unit": ..., "doc": ...}} of the names, as names.def has them.
void write_numbers(JsonWriter& json, const std::vector<std::string>& names);

}  // namespace kf::report
