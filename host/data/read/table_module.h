#pragma once
// Between the program and libkf-arrow.so, which alone knows Arrow and Parquet and is opened when such a file is met. Nothing throws across:
// what goes wrong comes back as words.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// What to read of a table.
struct TableRequest {
  std::string path;
  bool parquet = false;    // else Arrow, file or stream
  std::int64_t begin = 0;  // of Parquet: row groups whose first byte lies in [begin, end)
  std::int64_t end = 0;
  std::vector<std::string> columns;    // as RecordText::fields
  std::vector<std::string> described;  // each column for messages, as RecordText::describe
  std::vector<bool> optional;          // whether a table may lack it
  bool strings_only = true;            // else numbers and booleans are printed
  bool json = false;                   // every value is JSON, of any type; "a.b" stands for the column a where there is none of that name
  bool chat = false;                   // the first column is a list of messages, or such a list as text
};

/// The rows of a table, one after the other.
class TableRows {
 public:
  virtual ~TableRows() = default;
  enum class Step { row, end, broken, failed };  // broken: this row only; failed: for good
  virtual Step next() noexcept = 0;
  virtual std::int64_t row() const noexcept = 0;  // in the file, from 0
  /// Of the row: a value a column asked for; with `json` one for each of `names`. Until the next step.
  virtual std::span<const std::string_view> values() const noexcept = 0;
  virtual std::span<const std::string> names() const noexcept = 0;
  virtual std::int64_t position() const noexcept = 0;  // bytes of the file used up, about
  virtual const std::string& error() const noexcept = 0;
};

/// Changes with these declarations: a module of another build is refused.
constexpr int kTableModuleVersion = 2;

/// The module's `kf_open_table`: null, and why in `error`, when the table cannot be opened. The caller deletes the rows.
using OpenTable = TableRows* (*)(const TableRequest& request, std::string& error) noexcept;
/// Its `kf_table_version`.
using TableVersion = int (*)() noexcept;

}  // namespace kf
