#pragma once
// A run in MLflow's file store (metrics.mlflow_dir): DIR/0/RUN with meta.yaml, params, tags, and a file a number under metrics, whose lines
// are "milliseconds value step".

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "core/fs.h"
#include "metrics/outage.h"
#include "metrics/row.h"
#include "metrics/sink.h"

namespace kf {

/// Numbers have their names with '.' for '/', since one would be file and folder at once ("watch/grads", "watch/grads/layers.0");
/// names of others that would then be another's get a few digits of their own. Where the run goes on, or goes back, lines of later steps
/// are removed. What the disk does not take waits, as in JsonlSink, also what a run has beside its numbers.
class MlflowSink final : public Sink {
 public:
  /// Throws Code::other when the folder cannot be made or written into; a full disk is no reason.
  void begin(const RunInfo& run) override;
  void row(const StepRow& row) override;
  void eval(const EvalResult& result) override;
  void saved(std::int64_t step, const fs::path& checkpoint) override;
  void rewind(std::int64_t step) override;
  /// Throws Code::checkpoint where lines could not be written to the last.
  void end(const RunResult& result) override;
  std::string fault() const override { return outage_.reason(); }
  /// Lines that wait.
  config::Node state() override;
  void load(const config::Node& state) override;

 private:
  struct Line {
    std::string file;
    std::int64_t step = 0;
    std::string text;
  };
  void write_head();
  void leave_out(std::int64_t completed);
  void keep(std::int64_t completed);
  void put(std::int64_t step, double time, const Values& numbers);
  void settle();
  void write_meta(int status, std::int64_t end_time);

  fs::path folder_;  // of the run
  std::string name_;
  std::map<std::string, std::string> meta_;
  std::map<std::string, std::string> settings_;
  bool begun_ = false;  // meta and settings are written
  std::deque<Line> waiting_;
  std::optional<std::int64_t> cut_;  // lines behind this step are still to be removed
  std::set<std::string> touched_;    // files with lines that may not be on the disk
  Outage outage_;
};

}  // namespace kf
