#pragma once
// The table of a run on the terminal, and a progress bar below it. Written to a file or pipe, the plain lines only. On a terminal no line
// is wider than it: notes that do not fit behind a row stand below it.
//
//  step     loss    ppl      lr     grad   tok/s    mfu   eta
//   100   2.4038   11.1  9.9e-04  0.551   22.3k   62 %   3m40   val 2.391 (3.45 bits/byte)  saved step_100
// [============>                      ] 137/400  loss 2.118  22.4k tok/s  eta 3m13

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "metrics/numbers.h"
#include "metrics/sink.h"
#include "metrics/throughput.h"

namespace kf {

struct ConsoleOptions {
  bool bar = false;  // `out` is a terminal that can redraw a line
  bool color = false;
  std::function<int()> columns;  // of the terminal; asked again and again, so that it follows the window. Empty: lines may be long
  Clock clock = steady_clock();
};

/// What suits standard output: bar and width on a terminal (not when TERM is dumb), colour unless NO_COLOR is set.
ConsoleOptions stdout_options();

/// "model   transformer, 3,213,568 parameters: ..."; `right` ends at column 80 where there is room. For the lines before the table.
std::string header_line(const std::string& label, const std::string& text, const std::string& right = {});

/// A rate or count with three digits: "812", "22.4k", "1.31M".
std::string short_count(double value);

/// At most one with a bar at a time, since log lines must step around it. Everything but log lines comes from one thread.
class ConsoleSink final : public Sink {
 public:
  ConsoleSink(std::ostream& out, ConsoleOptions options);
  ~ConsoleSink() override;
  ConsoleSink(const ConsoleSink&) = delete;
  ConsoleSink& operator=(const ConsoleSink&) = delete;

  void begin(const RunInfo& run) override;
  void row(const StepRow& row) override;
  void eval(const EvalResult& result) override;
  void saved(std::int64_t step, const fs::path& checkpoint) override;
  /// Prints the row of the step with its notes, and moves the bar (about ten times a second).
  void step_over(std::int64_t step) override;
  /// Prints what is held back and takes the bar away.
  void end(const RunResult& result) override;

 private:
  void flush_row();
  void print(const std::string& line);
  std::string table_row(const StepRow& row) const;
  std::size_t step_width() const;
  std::size_t row_columns() const;
  /// A terminal that is too narrow for all columns loses the share of the device's peak.
  bool shows_mfu() const;
  std::string eta(std::int64_t step) const;
  std::string bar_line() const;
  void draw();
  void erase();
  static void before_log();
  static void after_log();

  std::ostream& out_;
  ConsoleOptions options_;
  std::int64_t max_steps_ = 0;
  std::int64_t start_step_ = 0;  // completed before this process took over
  double began_;
  bool header_printed_ = false;
  std::optional<StepRow> row_;   // held until its step is over
  std::int64_t noted_step_ = 0;  // step of the notes
  std::vector<std::string> notes_;
  std::optional<StepRow> last_;  // for the bar
  Smoothed rate_;
  std::int64_t done_ = 0;
  double drawn_at_ = -1e9;
  std::mutex drawing_;  // log lines come from other threads too
  bool drawn_ = false;
};

}  // namespace kf
