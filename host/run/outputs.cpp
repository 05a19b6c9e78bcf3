#include "run/outputs.h"

#include <iostream>
#include <variant>

#include "core/plain_file.h"
#include "run/run_folders.h"
#include "run/run_parts.h"
#include "train/loop/run_result.h"

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
  const fs::path rows = run.plan.dir / "metrics.jsonl";
  Outputs out;
  if (!run.world.leads()) {
    return out;
  }
  if (completed) {
    out.seconds_before = seconds_until(rows, *completed);
  } else {
    keep_old_rows(rows);
  }
  const std::int64_t step = completed.value_or(0);
  out.jsonl = std::make_unique<JsonlSink>(rows, step);
  ConsoleOptions console = stdout_options();
  console.max_steps = run.plan.max_steps;
  console.start_step = step;
  out.console = std::make_unique<ConsoleSink>(std::cout, console);
  out.others = make_sinks(run.config, run.registries, run.plan.dir, step);
  return out;
}

std::vector<Sink*> Outputs::all() const {
  if (jsonl == nullptr) {
    return {};
  }
  std::vector<Sink*> sinks{jsonl.get(), console.get()};
  for (const std::unique_ptr<Sink>& sink : others) {
    sinks.push_back(sink.get());
  }
  return sinks;
}

}  // namespace kf
