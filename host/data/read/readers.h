#pragma once
// The readers, one a format; `open_records` chooses.

#include <memory>

#include "data/read/reader.h"
#include "data/read/record_text.h"

namespace kf {

/// Leaves broken records out where that is asked for; a reader says how the next one is read.
class RowReader : public RecordReader {
 public:
  RowReader(const ReadOptions& options, Skipped& skipped) : skip_(options.skip_broken), skipped_(skipped) {}
  bool next(Record& record) final;

 private:
  /// The next record; false at the end. After a BrokenRecord the one behind it is next.
  virtual bool advance(Record& record) = 0;

  bool skip_;
  Skipped& skipped_;
};

/// Throws Code::data when a text is not UTF-8: BrokenRecord, with `place` before it.
void check_utf8(std::string_view text, const std::string& place);

std::unique_ptr<RecordReader> open_text(const SourceFile& file, const ReadOptions& options, Skipped& skipped);
std::unique_ptr<RecordReader> open_jsonl(const SourceFile& file, const FileSpan& part, const ReadOptions& options, Skipped& skipped);
/// A list of records, or records one after the other, over as many lines as they like.
std::unique_ptr<RecordReader> open_json(const SourceFile& file, const ReadOptions& options, Skipped& skipped);
/// RFC 4180 with a header; fields end at a comma, or at a tab in .tsv files.
std::unique_ptr<RecordReader> open_csv(const SourceFile& file, const ReadOptions& options, Skipped& skipped);
/// Parquet and Arrow, by the module beside the program.
std::unique_ptr<RecordReader> open_table(const SourceFile& file, const FileSpan& part, const ReadOptions& options, Skipped& skipped);

}  // namespace kf
