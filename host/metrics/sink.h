#pragma once
// Where the numbers of a run go: the terminal, metrics.jsonl, a table of one's own. The kind `sink` of metrics.sinks.

#include <cstdint>
#include <string>

#include "config/tree/node.h"
#include "core/fs.h"
#include "metrics/eval_result.h"
#include "metrics/histogram.h"
#include "metrics/row.h"
#include "metrics/run_result.h"
#include "metrics/text_sample.h"

namespace kf {

namespace config {
struct Config;
struct Plan;
}  // namespace config

/// What a sink may want to know of its run. What it refers to outlives the sink.
struct RunInfo {
  const config::Config& config;
  const config::Plan& plan;          // its folder and length among others
  std::string id;                    // as in run.json; the same after a resume
  std::string job_toml;              // the resolved job
  std::int64_t parameters = 0;       // of the model
  std::int64_t completed_steps = 0;  // from which it goes on; 0 for a new one
};

/// The loop calls `load` (where the checkpoint has something) and `begin`; within a step `text`, `histograms`, `row` (where it is logged),
/// `eval` and `saved` (where they happen), then `step_over`; at last `end`. All come from the training thread and may be as slow as
/// memory; what writes files or talks to a network belongs behind in_background.
///
/// What a sink throws ends the run as it is, with its own code, so its message must name what could not be done. A run that an error
/// ends calls nothing any more: its sinks are destroyed without `end`.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void begin(const RunInfo& /*run*/) {}
  virtual void row(const StepRow& row) = 0;
  virtual void eval(const EvalResult& result) = 0;
  /// What a hook has written for people to read (ctx:log_text).
  virtual void text(const TextSample& /*sample*/) {}
  /// metrics.histogram_interval.
  virtual void histograms(const Histograms& /*all*/) {}
  /// Before a checkpoint is written: what the run has written itself must be there.
  virtual void before_save() {}
  virtual void saved(std::int64_t /*step*/, const fs::path& /*checkpoint*/) {}
  /// The run went back to `step` and does the later ones again. The sink's state stays what it is.
  virtual void rewind(std::int64_t /*step*/) {}
  /// After every step, logged or not: nothing more will come for it.
  virtual void step_over(std::int64_t /*step*/) {}
  virtual void end(const RunResult& /*result*/) {}
  /// Why rows wait in memory that a file of the run could not take, "" where none do: with checkpoint.on_error = "stop" the run is then
  /// saved, with these rows in `state`, and ends.
  virtual std::string fault() const { return {}; }

  /// What a resumed run must know again, such as the name of the run elsewhere; null: nothing. Kept in checkpoints by the sink's name.
  /// (Parts of scripts keep theirs as all of them do, in PartStates.)
  virtual config::Node state() { return {}; }
  virtual void load(const config::Node& /*state*/) {}
};

}  // namespace kf
