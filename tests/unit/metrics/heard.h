#pragma once
// A sink that writes down what it is told.

#include <functional>
#include <string>
#include <vector>

#include "core/text.h"
#include "metrics/sink.h"

namespace kf::test {

/// Everything in order, as "row 3"; outlives the sink.
using Heard = std::vector<std::string>;

class HearingSink final : public Sink {
 public:
  /// `first` is called before an event is written down, and may throw.
  explicit HearingSink(Heard& heard, std::function<void(const std::string& event)> first = {}) : heard_(heard), first_(std::move(first)) {}

  void begin(const RunInfo& run) override { hear(format("begin {}", run.completed_steps)); }
  void row(const StepRow& row) override { hear(format("row {}", row.step)); }
  void eval(const EvalResult& result) override { hear(format("eval {}", result.step)); }
  void text(const TextSample& sample) override { hear(format("text {} {}", sample.step, sample.name)); }
  void histograms(const Histograms& all) override { hear(format("histograms {}", all.step)); }
  void before_save() override { hear("before_save"); }
  void saved(std::int64_t step, const fs::path& checkpoint) override { hear(format("saved {} {}", step, checkpoint.string())); }
  void rewind(std::int64_t step) override { hear(format("rewind {}", step)); }
  void step_over(std::int64_t step) override { hear(format("over {}", step)); }
  void end(const RunResult& result) override { hear("end " + result.status); }
  std::string fault() const override { return trouble; }
  config::Node state() override {
    hear("state");
    return kept;
  }
  void load(const config::Node& state) override {
    hear("load");
    kept = state;
  }

  config::Node kept;
  std::string trouble;

 private:
  void hear(const std::string& event) {
    if (first_) {
      first_(event);
    }
    heard_.push_back(event);
  }

  Heard& heard_;
  std::function<void(const std::string&)> first_;
};

inline StepRow row_at(std::int64_t step) {
  StepRow row;
  row.step = step;
  return row;
}

/// Tells `sink` one of everything, in a run's order.
inline void tell_all(Sink& sink, const std::function<void(Sink&)>& begin) {
  sink.load(config::Node("kept"));
  begin(sink);
  sink.text({1, "samples/1", "a text"});
  sink.histograms({1, {}});
  sink.row(row_at(1));
  sink.eval({.step = 1});
  sink.step_over(1);
  sink.state();
  sink.before_save();
  sink.saved(2, "runs/x/step_2");
  sink.rewind(2);
  sink.end({.status = "complete"});
}

}  // namespace kf::test
