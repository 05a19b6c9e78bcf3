#pragma once
// Event files for TensorBoard (metrics.tensorboard_dir): numbers of rows and evaluations, texts, histograms, the settings of the job.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "core/fs.h"
#include "core/held_file.h"
#include "metrics/late_lines.h"
#include "metrics/sink.h"
#include "metrics/tracker/step_record.h"

namespace kf {

/// Each start of a run, and each roll-back, begins a file behind those before it in the order of names. What earlier files have of the step
/// at which the run goes on, and of later ones, is left out of them, and the new file's first record tells it to readers that have read
/// them already. What the disk does not take waits, as in JsonlSink.
class TensorBoardSink final : public Sink {
 public:
  /// Throws Code::other when the folder cannot be made or written into; a full disk is no reason.
  void begin(const RunInfo& run) override;
  void row(const StepRow& row) override;
  void eval(const EvalResult& result) override;
  void text(const TextSample& sample) override;
  void histograms(const Histograms& all) override;
  void before_save() override;
  void saved(std::int64_t step, const fs::path& checkpoint) override;
  void rewind(std::int64_t step) override;
  void step_over(std::int64_t step) override;
  /// Throws Code::checkpoint where records could not be written to the last.
  void end(const RunResult& result) override;
  std::string fault() const override { return late_ ? late_->fault() : ""; }
  /// Records that wait.
  config::Node state() override;
  void load(const config::Node& state) override;

 private:
  void begin_file(std::int64_t first);
  void open(std::int64_t first);
  void add(std::int64_t step, const std::string& records);
  void flush();
  void settle();

  fs::path folder_;
  std::optional<LateLines<StepRecord>> late_;  // from begin on
  std::optional<HeldFile> file_;               // from when the disk first took it
  StepRecord running_;                         // of the running step
  std::deque<StepRecord> loaded_;              // before begin
  std::size_t bytes_ = 0;                      // of what waits
};

}  // namespace kf
