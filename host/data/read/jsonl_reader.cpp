// JSON lines: a record a line; blank lines are passed over.

#include <algorithm>
#include <array>

#include "core/error.h"
#include "core/text.h"
#include "data/file/decompress.h"
#include "data/file/lines.h"
#include "data/read/json_record.h"
#include "data/read/readers.h"

namespace kf {
namespace {

constexpr std::string_view kMark = "\xef\xbb\xbf";

std::unique_ptr<ByteStream> open_stream(const SourceFile& file, std::int64_t begin) {
  if (begin > 0) {
    return std::make_unique<FileStream>(file.path, begin - 1);
  }
  return open_bytes(file.path, file.kind.compression);
}

/// Line breaks in the first `end` bytes of a file: only for the message about a line of a later part.
std::int64_t lines_before(const fs::path& path, std::int64_t end) {
  const InputFile file(path);
  std::vector<char> buffer(std::size_t{1} << 20);
  std::int64_t lines = 0;
  for (std::int64_t at = 0; at < end;) {
    const std::size_t wanted = std::min(buffer.size(), static_cast<std::size_t>(end - at));
    const std::size_t got = file.read_at(at, buffer.data(), wanted);
    if (got == 0) {
      break;
    }
    lines += std::count(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(got), '\n');
    at += static_cast<std::int64_t>(got);
  }
  return lines;
}

class JsonlReader final : public RowReader {
 public:
  JsonlReader(const SourceFile& file, const FileSpan& part, const ReadOptions& options, Skipped& skipped)
      : RowReader(options, skipped),
        path_(file.path),
        begin_(part.begin),
        end_(part.end),
        lines_(open_stream(file, part.begin), file.path, options.max_record_bytes),
        record_(options) {
    if (begin_ > 0) {
      lines_.skip(end_ - begin_ + 1);  // it starts before the part, or is the break that ends it
    }
  }

  std::int64_t position() const override { return lines_.position(); }

 private:
  bool advance(Record& record) override {
    record_.release();
    for (;;) {
      if (lines_.next_start() + (begin_ > 0 ? begin_ - 1 : 0) >= end_) {
        return false;
      }
      const std::optional<std::string_view> line = lines_.next();
      if (!line) {
        return false;
      }
      std::string_view text = *line;
      if (begin_ == 0 && lines_.number() == 1 && text.starts_with(kMark)) {
        text.remove_prefix(kMark.size());
      }
      if (trim(text).empty()) {
        continue;
      }
      record.number = lines_.number();
      record_.read(text, record, [&] { return place(); });
      return true;
    }
  }

  std::string place() const {
    const std::int64_t before = begin_ > 0 ? lines_before(path_, begin_ - 1) : 0;
    return format("{}:{}", path_, before + lines_.number());
  }

  fs::path path_;
  std::int64_t begin_;
  std::int64_t end_;
  Lines lines_;
  JsonRecord record_;
};

}  // namespace

std::unique_ptr<RecordReader> open_jsonl(const SourceFile& file, const FileSpan& part, const ReadOptions& options, Skipped& skipped) {
  return std::make_unique<JsonlReader>(file, part, options, skipped);
}

}  // namespace kf
