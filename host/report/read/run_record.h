#pragma once
// What a run's folder says beside its numbers: run.json, result.json, what went wrong, what it wrote.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/tree/node.h"
#include "core/fs.h"
#include "report/read/columns.h"

namespace kf::report {

/// One process of a run, or one set of ranks.
struct Start {
  std::string time;             // UTC, "2026-11-28T21:47:03Z"
  std::string command, folder;  // as typed, and where
  std::string host, device;
  std::int64_t step = 0;              // from which it went on
  std::string end;                    // UTC; "" where none is written
  std::string status, error;          // "complete", "stopped", "failed"; "" likewise
  std::optional<std::int64_t> steps;  // completed at its end
  config::Table all;                  // everything that run.json has of it
};

/// run.json.
struct Record {
  std::string id, name, job, script;
  std::vector<std::string> tags, arguments;
  std::vector<Start> starts;
  config::Table all;
};
/// Throws Code::other where it is not there or cannot be read.
Record read_record(const fs::path& run);

/// result.json, as the run has written it; nothing where there is none, or it is damaged.
std::optional<config::Table> read_result(const fs::path& run);

/// {"torch", "2.11.0"}, ...: what the start ran on and with, for people, in a fixed order.
std::vector<std::pair<std::string, std::string>> environment_of(const Start& start);

/// Something that a good run has none of.
struct Mark {
  enum class Kind { restart, failed, killed, skipped, not_finite, rolled_back, stalled };
  Kind kind = Kind::restart;
  std::int64_t step = 0;  // completed steps; of a skip the first row that tells of it
  std::string time;       // UTC; "" where only the step is known
  std::string text;       // for people, one line
  fs::path folder = {};   // of an incident that is kept
};
/// "restart", "failed", ...
const char* to_word(Mark::Kind kind);
/// By step. `steps`: the run's rows, for `skipped`; may be empty. Reads run.json, incidents/ and log.txt; what cannot be read is left out.
std::vector<Mark> marks_of(const fs::path& run, const Columns& steps);

/// What the model wrote at a step (artifacts/samples.json: [{"step": 20, "prompt": "The ", "text": "..."}, ...]).
struct Sample {
  std::int64_t step = 0;
  std::string prompt, text;
};
/// In order; empty where there are none, or they cannot be read.
std::vector<Sample> samples_of(const fs::path& run);

}  // namespace kf::report
