#pragma once
// Where the numbers of a run go: the terminal, metrics.jsonl, and the sinks of metrics.sinks.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "metrics/console.h"
#include "metrics/jsonl.h"
#include "metrics/sink.h"
#include "run/run_context.h"

namespace kf {

struct Outputs {
  double seconds_before = 0;  // that earlier processes of the run trained
  std::unique_ptr<JsonlSink> jsonl;
  std::unique_ptr<ConsoleSink> console;
  std::vector<std::unique_ptr<Sink>> others;

  std::vector<Sink*> all() const;
};

/// `completed`: steps of the run that goes on, or nothing for a new one, whose folder may hold rows of an earlier run: they are kept aside.
/// The leader writes; the others have none.
Outputs open_outputs(const RunContext& run, std::optional<std::int64_t> completed);

}  // namespace kf
