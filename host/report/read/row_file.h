#pragma once
// metrics.jsonl of a run, as columns; also while the run writes it.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/fs.h"
#include "report/read/columns.h"
#include "report/read/line_file.h"
#include "report/read/row_parser.h"

namespace kf::report {

class RowFile {
 public:
  /// `file` need not be there yet. `wanted`: the names whose numbers are kept, those of evaluations as "eval.loss" or "eval.SET.loss";
  /// empty: all. Few names are read faster.
  explicit RowFile(fs::path file, std::vector<std::string> wanted = {});

  /// Reads what has come since the last call. After `again` the columns hold the new content alone. Throws Code::other where the file is
  /// there and cannot be read.
  News read();

  /// The rows of steps: "loss", "lr", "time", ...; without "step", which is Columns::steps.
  const Columns& steps() const { return parsers_.front().steps(); }
  /// The evaluations: "loss", "accuracy", and of the sets "SET.loss".
  const Columns& evals() const { return parsers_.front().evals(); }
  /// The column of "loss", or of "eval.loss", with the steps of its rows; both null where there is none.
  struct Series {
    const std::vector<std::int64_t>* steps = nullptr;
    const std::vector<double>* values = nullptr;
  };
  Series find(std::string_view metric) const;
  /// Every name that `find` knows, those of evaluations behind the others.
  std::vector<std::string> names() const;

  /// The first hundred of the lines that are no rows, and how many there are.
  const std::vector<BrokenLine>& broken() const { return parsers_.front().broken(); }
  std::int64_t broken_count() const { return parsers_.front().broken_count(); }

 private:
  void take(std::string_view lines);

  LineFile file_;
  std::vector<std::string> wanted_;
  std::vector<RowParser> parsers_;
};

}  // namespace kf::report
