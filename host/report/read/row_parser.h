#pragma once
// Lines of metrics.jsonl, as columns.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "report/read/columns.h"

namespace kf::report {

/// A line that is no row, and is passed over.
struct BrokenLine {
  std::int64_t line = 0;  // from 1
  std::string fault;
};

/// What lines have told, one behind the other.
class RowParser {
 public:
  /// `wanted`: as of RowFile.
  explicit RowParser(std::vector<std::string> wanted);
  ~RowParser();
  RowParser(RowParser&& other) noexcept;
  RowParser& operator=(RowParser&& other) noexcept;

  /// Whole lines, each with its newline; LineFile::kPadding bytes behind them can be read.
  void take(std::string_view lines);
  /// The rows of `next`, whose lines stand behind those of this one; it has none then.
  void take_from(RowParser& next);
  /// Makes all columns as long as there are rows.
  void level();

  /// As of RowFile.
  const Columns& steps() const;
  const Columns& evals() const;
  const std::vector<BrokenLine>& broken() const;
  std::int64_t broken_count() const;

 private:
  class Lines;
  std::unique_ptr<Lines> lines_;
};

}  // namespace kf::report
