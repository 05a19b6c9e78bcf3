#include "data/read/reader.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "core/text.h"
#include "data/file/memory_fault.h"
#include "data/file/utf8.h"
#include "data/read/readers.h"

namespace kf {
namespace {

constexpr std::size_t kReasons = 5;

/// Keeps what was fetched for a reader until the reader is done.
class FetchedReader final : public RecordReader {
 public:
  FetchedReader(std::shared_ptr<const fs::path> local, std::unique_ptr<RecordReader> reader)
      : local_(std::move(local)), reader_(std::move(reader)) {}
  bool next(Record& record) override { return reader_->next(record); }
  std::int64_t position() const override { return reader_->position(); }

 private:
  std::shared_ptr<const fs::path> local_;
  std::unique_ptr<RecordReader> reader_;
};

/// Names the file where memory runs out, and ends at texts that are too long, whatever they were read from.
class BoundedReader final : public RecordReader {
 public:
  BoundedReader(fs::path path, std::size_t most, std::unique_ptr<RecordReader> reader)
      : path_(std::move(path)), most_(most), reader_(std::move(reader)) {}
  bool next(Record& record) override {
    const bool first = std::exchange(first_, false);
    const bool more = naming_file(path_, first ? 0 : record.number + 1, [&] { return reader_->next(record); });
    KF_CHECK(!more || record.text.size() <= most_, Code::data, "{}: record {} is a text of {} bytes, more than data.max_record_bytes ({})",
             path_, record.number, record.text.size(), most_);
    return more;
  }
  std::int64_t position() const override { return reader_->position(); }

 private:
  fs::path path_;
  std::size_t most_;
  std::unique_ptr<RecordReader> reader_;
  bool first_ = true;
};

std::unique_ptr<RecordReader> open_format(const SourceFile& file, const FileSpan& part, const ReadOptions& options, Skipped& skipped) {
  switch (file.kind.format) {
    case FileFormat::text: return open_text(file, options, skipped);
    case FileFormat::jsonl: return open_jsonl(file, part, options, skipped);
    case FileFormat::json: return open_json(file, options, skipped);
    case FileFormat::csv:
    case FileFormat::tsv: return open_csv(file, options, skipped);
    case FileFormat::parquet:
    case FileFormat::arrow: return open_table(file, part, options, skipped);
    case FileFormat::tokens: break;
  }
  fail(Code::data, "{} holds token ids, no text", file.path);
}

std::unique_ptr<RecordReader> open_local(const SourceFile& file, const FileSpan& part, const ReadOptions& options, Skipped& skipped) {
  return std::make_unique<BoundedReader>(file.path, options.max_record_bytes,
                                         naming_file(file.path, 0, [&] { return open_format(file, part, options, skipped); }));
}

}  // namespace

void Skipped::add(const std::string& reason) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++count_;
  if (reasons_.size() < kReasons) {
    reasons_.push_back(reason);
    log::warn("left out (data.on_error = \"skip\"): {}", reason);
  } else if (count_ == static_cast<std::int64_t>(kReasons) + 1) {
    log::warn("left out: more records; they are counted from here on");
  }
}

std::int64_t Skipped::count() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return count_;
}

std::vector<std::string> Skipped::reasons() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return reasons_;
}

bool RowReader::next(Record& record) {
  for (;;) {
    try {
      return advance(record);
    } catch (const BrokenRecord& broken) {
      if (!skip_) {
        throw;
      }
      skipped_.add(broken.what());
    }
  }
}

void check_utf8(std::string_view text, const std::string& place) {
  if (!valid_utf8(text)) [[unlikely]] {
    throw BrokenRecord(format("{}: {}", place, utf8_fault(text)));
  }
}

std::vector<FileSpan> split_file(const SourceFile& file, std::int64_t bytes) {
  const bool lines = file.kind.format == FileFormat::jsonl && file.kind.compression == Compression::none;
  const bool splittable = (lines || file.kind.format == FileFormat::parquet) && !file.remote;
  if (!splittable || bytes <= 0 || file.size <= bytes) {
    return {FileSpan{}};
  }
  std::vector<FileSpan> parts;
  const std::int64_t count = (file.size + bytes - 1) / bytes;
  for (std::int64_t i = 0; i < count; ++i) {
    parts.push_back({file.size / count * i, file.size / count * (i + 1)});
  }
  parts.back().end = FileSpan{}.end;
  return parts;
}

std::unique_ptr<RecordReader> open_records(const SourceFile& file, const FileSpan& part, const ReadOptions& options, Skipped& skipped) {
  if (!file.remote) {
    return open_local(file, part, options, skipped);
  }
  std::shared_ptr<const fs::path> local = file.remote->fetch();
  SourceFile fetched = file;
  fetched.path = *local;
  return std::make_unique<FetchedReader>(std::move(local), open_local(fetched, part, options, skipped));
}

}  // namespace kf
