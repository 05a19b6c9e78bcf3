#pragma once
// runs/<name>/metrics.csv: one line a step that was logged or evaluated, for spreadsheets; cells as RFC 4180 has them.
//
// A number that comes later than the first line (a metric with a period, a source of the mixture, an evaluation) gets a column behind the
// others: the file is then written anew, and the lines before have an empty cell there. Numbers that a line does not have, and means over
// nothing, are empty cells.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/tree/node.h"
#include "core/fs.h"
#include "core/held_file.h"
#include "metrics/late_lines.h"
#include "metrics/sink.h"

namespace kf {

/// What the disk does not take waits, as in JsonlSink.
class CsvSink final : public Sink {
 public:
  explicit CsvSink(fs::path path) : late_(std::move(path), "lines") {}
  ~CsvSink() override;
  CsvSink(const CsvSink&) = delete;
  CsvSink& operator=(const CsvSink&) = delete;

  /// Goes on behind the completed steps: lines of later ones are removed. Throws Code::other when the file cannot be read or written.
  void begin(const RunInfo& run) override;
  void row(const StepRow& row) override;
  /// Columns eval_loss, eval_perplexity, ...; of a set of [[eval.datasets]] eval_NAME_loss, ...
  void eval(const EvalResult& result) override;
  void rewind(std::int64_t step) override;
  /// A file that others deleted or replaced is written again, with a warning.
  void before_save() override;
  void step_over(std::int64_t step) override;
  /// Throws Code::checkpoint where lines could not be written to the last.
  void end(const RunResult& result) override;
  std::string fault() const override { return late_.fault(); }
  /// Lines that wait.
  config::Node state() override;
  void load(const config::Node& state) override;
  /// `begin` of a run that has completed these steps.
  void go_on(std::int64_t completed_steps);

 private:
  void keep(std::int64_t completed_steps);
  void leave_out(std::int64_t step);
  void to_line(std::int64_t step);
  void add_columns(const config::Table& line);
  void flush();
  void append(const config::Table& line);
  void settle();

  std::optional<HeldFile> file_;  // from begin on
  std::vector<std::string> columns_;
  config::Table pending_;  // of the running step: column by column
  LateLines<config::Table> late_;
};

}  // namespace kf
