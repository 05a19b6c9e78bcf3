#pragma once
// runs/<name>/metrics.csv: one line a logged step, for spreadsheets. Columns are those of the first row; evaluations fill eval_loss of the
// next one.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/fs.h"
#include "metrics/sink.h"

namespace kf {

class CsvSink final : public Sink {
 public:
  /// Goes on after `completed_steps`: lines of later steps are removed. Throws Code::other when the file cannot be read or written.
  CsvSink(fs::path path, std::int64_t completed_steps);

  void step(const StepRow& row) override;
  void eval(const EvalResult& result) override { eval_ = result.loss; }
  void rewind(std::int64_t step) override;

 private:
  void keep(std::int64_t completed_steps);

  fs::path path_;
  std::vector<std::string> columns_;
  std::optional<double> eval_;
};

}  // namespace kf
