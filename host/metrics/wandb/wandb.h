#pragma once
// An offline run of Weights & Biases in the run's folder: wandb/offline-run-DATE-ID/run-ID.wandb, which `wandb sync` uploads.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "core/fs.h"
#include "core/held_file.h"
#include "metrics/late_lines.h"
#include "metrics/sink.h"
#include "metrics/tracker/step_record.h"
#include "metrics/wandb/record.h"

namespace kf {

/// All of a run is one file, over all its starts: where the run goes on, or goes back, what the file has of later steps is left out and the
/// file written anew, so each step is logged once. Numbers, texts and histograms of a step are one row. What the disk does not take waits,
/// as in JsonlSink.
class WandbSink final : public Sink {
 public:
  /// Throws Code::other when the folder cannot be made or written into, or something else has the file's name; a full disk is no reason.
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
  void keep(std::int64_t completed);
  void leave_out(std::int64_t step);
  void to_step(std::int64_t step);
  void put(const std::string& name, std::string json);
  void put_record(std::int64_t step, std::string record);
  void flush();
  void append(const StepRecord& record);
  void sum_up(const wandb::Items& items);
  void settle();

  wandb::RunHead head_;
  std::optional<LateLines<StepRecord>> late_;  // from begin on
  std::optional<HeldFile> file_;               // from when the disk first took it
  std::size_t size_ = 0;                       // of the file
  std::int64_t number_ = 0;                    // of its last record
  std::map<std::string, std::string> summary_;
  std::int64_t step_ = 0;          // the running one
  wandb::Items running_;           // of it
  double seconds_ = 0;             // of training, by the last row
  std::deque<StepRecord> loaded_;  // before begin
  std::size_t bytes_ = 0;          // of what waits
};

}  // namespace kf
