#include "run/outputs.h"

#include <algorithm>
#include <exception>
#include <string>
#include <variant>
#include <vector>

#include "checkpoint/values.h"
#include "core/error.h"
#include "core/log.h"
#include "core/plain_file.h"
#include "metrics/csv.h"
#include "metrics/jsonl.h"
#include "run/run_folders.h"

namespace kf {
namespace {

/// How long the run had trained at the last row up to `step`; 0 where the rows do not tell.
double seconds_until(const fs::path& rows, std::int64_t step) {
  double seconds = 0;
  try {
    for (const auto& row : path_exists(rows) ? read_rows(rows) : decltype(RunResult::history)()) {
      const auto* const one = std::get_if<StepRow>(&row);
      seconds = one != nullptr && one->step <= step ? one->seconds : seconds;
    }
  } catch (const Error&) {
    return seconds;  // who opens the file for writing says what is wrong with it
  }
  return seconds;
}

}  // namespace

Outputs open_outputs(const RunContext& run, std::optional<std::int64_t> completed) {
  Outputs out;
  if (!run.world.leads()) {
    return out;
  }
  if (!completed) {
    keep_old_rows(run.plan.dir / "metrics.jsonl");
  } else if (const std::optional<fs::path> rows = rows_of(run)) {
    out.seconds_before = seconds_until(*rows, *completed);
  }
  for (const std::string& name : run.plan.sinks) {
    if (run.registries.sink.find(name) != nullptr) {  // else a setting adds it that has no effect yet, of which the log has a warning
      out.sinks.add(name, make_part(run.registries.sink, name, run.config, run.registries, run.plan.dir));
    }
  }
  return out;
}

void write_late_rows(const RunContext& run, const CheckpointState& state) {
  const auto write = [&](const char* name, auto&& sink) {
    const config::Table* const states = value_at(state.values, kSinks).table();
    const config::Node* const waiting = states != nullptr ? states->find(name) : nullptr;
    if (waiting == nullptr || waiting->array() == nullptr) {
      return;
    }
    try {
      sink.load(*waiting);
      sink.go_on(state.run.step);
    } catch (const std::exception& e) {
      log::warn("rows that waited for the disk are not written: {}", e.what());
    }
  };
  write("jsonl", JsonlSink(run.plan.dir / "metrics.jsonl"));
  write("csv", CsvSink(run.plan.dir / "metrics.csv"));
}

std::optional<fs::path> rows_of(const RunContext& run) {
  const std::vector<std::string>& sinks = run.plan.sinks;
  return std::find(sinks.begin(), sinks.end(), "jsonl") != sinks.end() ? std::optional(run.plan.dir / "metrics.jsonl") : std::nullopt;
}

}  // namespace kf
