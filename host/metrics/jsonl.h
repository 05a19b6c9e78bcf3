#pragma once
// runs/<name>/metrics.jsonl: one JSON object a logged step, one an evaluation.
//
// {"step": 10, "loss": 5.41, "grad_norm": 1.377, ...the numbers of names.def, then what is added and what hooks log}
// {"step": 20, "eval": {"loss": 2.391, "perplexity": 10.92, "tokens": 65536, "bits_per_byte": 3.45, "accuracy": 0.37}}
//   ... and "NAME": {"loss": ...} for each set of [[eval.datasets]]
//
// Reals are the shortest text that reads back to the same double; one that is not finite is null, and "not_finite" says what it was:
// {"loss": null, "not_finite": {"loss": "nan"}}. A mean over nothing is null alone: the means of a step without a label, loss and
// perplexity of a set without one.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "config/tree/node.h"
#include "core/fs.h"
#include "core/held_file.h"
#include "metrics/late_lines.h"
#include "metrics/sink.h"

namespace kf {

/// A row as it is written: key by key.
config::Table to_table(const StepRow& row);
config::Table to_table(const EvalResult& result);
/// One line of the file, without its newline; nothing where it is no row, as a file can say that was edited or damaged.
std::optional<std::variant<StepRow, EvalResult>> parse_row(const std::string& line, const fs::path& path);
/// The rows of a file, in order. Throws Code::other for a line that is none.
std::vector<std::variant<StepRow, EvalResult>> read_rows(const fs::path& path);

/// What the disk does not take (it is full, its mount is gone) waits in memory and is written in order as soon as it can be; `state` has
/// it, so that a run which goes on from a checkpoint writes it.
class JsonlSink final : public Sink {
 public:
  explicit JsonlSink(fs::path path) : late_(std::move(path), "rows") {}

  /// Goes on behind the completed steps: rows of later ones (of everything, at 0) are removed first, so that each step has one row; so is a
  /// last line that a killed run left half-written. Throws Code::other when the file cannot be read or written.
  void begin(const RunInfo& run) override;
  void row(const StepRow& row) override;
  void eval(const EvalResult& result) override;
  /// A file that others deleted or replaced is written again, with a warning.
  void before_save() override;
  /// Throws Code::checkpoint where rows could not be written to the last.
  void end(const RunResult& result) override;
  std::string fault() const override { return late_.fault(); }
  /// Rows that wait.
  config::Node state() override;
  void load(const config::Node& state) override;
  /// The rows up to a checkpoint are as durable as the checkpoint.
  void saved(std::int64_t step, const fs::path& checkpoint) override;
  /// Removes the rows of later steps.
  void rewind(std::int64_t step) override;

  /// `begin` of a run that has completed these steps.
  void go_on(std::int64_t completed_steps);

 private:
  void open(std::int64_t completed_steps);
  void leave_out(std::int64_t step);
  void count_bytes();
  void put(const config::Table& row);
  void settle();

  std::optional<HeldFile> file_;  // from begin on
  LateLines<std::string> late_;
  std::size_t bytes_ = 0;  // of what waits
};

}  // namespace kf
