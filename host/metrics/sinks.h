#pragma once
// All sinks of a run as one.

#include <memory>
#include <string>
#include <vector>

#include "metrics/sink.h"

namespace kf {

/// Hands every event to each of them, in the order of `add`. The first that throws ends the event, but for `end`, which all of them get.
class Sinks final : public Sink {
 public:
  /// `name` as in metrics.sinks, each once.
  void add(std::string name, std::unique_ptr<Sink> sink);

  void begin(const RunInfo& run) override;
  void row(const StepRow& row) override;
  void eval(const EvalResult& result) override;
  void text(const TextSample& sample) override;
  void histograms(const Histograms& all) override;
  void before_save() override;
  void saved(std::int64_t step, const fs::path& checkpoint) override;
  void rewind(std::int64_t step) override;
  void step_over(std::int64_t step) override;
  /// The first error is thrown when all have ended, others are logged.
  void end(const RunResult& result) override;
  std::string fault() const override;
  /// {name: state} of those that have one; null where none has.
  config::Node state() override;
  /// Gives each what is there under its name; the log names what nobody takes.
  void load(const config::Node& states) override;

 private:
  struct Named {
    std::string name;
    std::unique_ptr<Sink> sink;
  };
  std::vector<Named> all_;
};

}  // namespace kf
