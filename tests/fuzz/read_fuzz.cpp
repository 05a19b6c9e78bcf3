// Any bytes as a file of any kind: no crash, no hang, only our own errors, only valid UTF-8. The first byte chooses the kind, the second
// how it is read. With KF_ARROW_MODULE set, Parquet and Arrow are read, too.

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "core/error.h"
#include "data/file/megatron.h"
#include "data/file/token_file.h"
#include "data/file/utf8.h"
#include "data/read/reader.h"
#include "fuzz/fuzz.h"

namespace {

using namespace kf;
using fuzz::require;

constexpr const char* kSuffixes[] = {".jsonl",   ".json", ".csv", ".tsv", ".txt",     "",      ".jsonl.gz",
                                     ".csv.zst", ".npy",  ".bin", ".idx", ".parquet", ".arrow"};

fs::path folder() {
  static const fs::path made = fuzz::new_folder();
  return made;
}

void check(const Record& record) {
  require(valid_utf8(record.text), "a text is not UTF-8");
  std::size_t before = 0;
  for (const ByteRange& range : record.counted) {
    require(before <= range.begin && range.begin <= range.end && range.end <= record.text.size(), "a range outside of its text");
    before = range.end;
  }
}

/// All texts one after the other; nothing when the file is refused.
std::optional<std::string> read(const SourceFile& file, std::int64_t bytes, const ReadOptions& options) {
  std::string out;
  Skipped skipped;
  try {
    for (const FileSpan& part : split_file(file, bytes)) {
      const auto reader = open_records(file, part, options, skipped);
      for (Record record; reader->next(record); out += '\0') {
        check(record);
        out += record.text;
      }
    }
  } catch (const Error&) {
    return std::nullopt;
  }
  return out;
}

ReadOptions options_of(unsigned choice) {
  ReadOptions options;
  options.skip_broken = (choice & 1) != 0;
  options.max_record_bytes = 1 << 20;
  if ((choice & 6) == 2) {
    options.messages_field = "messages";
    options.answers_only = true;
  } else if ((choice & 6) == 4) {
    options.text_template = "{text}: {id}";
  }
  return options;
}

void read_ids(const fs::path& path) {
  try {
    const TokenFile file(path, {TokenType::uint16, 70000});
    std::vector<std::int64_t> ids(static_cast<std::size_t>(file.tokens()));
    file.read(0, ids);
  } catch (const Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) {
    return 0;
  }
  const std::string suffix = kSuffixes[data[0] % std::size(kSuffixes)];
  const std::string_view content(reinterpret_cast<const char*>(data) + 2, size - 2);
  const fs::path path = folder() / ("f" + suffix);
  std::FILE* const out = std::fopen(path.c_str(), "wb");
  require(out != nullptr && std::fwrite(content.data(), 1, content.size(), out) == content.size() && std::fclose(out) == 0, "cannot write");
  if (suffix == ".idx") {
    try {
      parse_megatron_index({reinterpret_cast<const std::byte*>(content.data()), content.size()}, path);
    } catch (const Error&) {
    }
    return 0;
  }
  if (suffix == ".npy" || suffix == ".bin") {
    read_ids(path);
    return 0;
  }
  const bool table = suffix == ".parquet" || suffix == ".arrow";
  if (table && std::getenv("KF_ARROW_MODULE") == nullptr) {
    return 0;
  }
  try {
    SourceFile file{path, "f", static_cast<std::int64_t>(content.size()), kind_of_file(path), "", nullptr};
    if (file.kind.format == FileFormat::tokens ||
        (!table && (file.kind.format == FileFormat::parquet || file.kind.format == FileFormat::arrow))) {
      return 0;
    }
    const ReadOptions options = options_of(data[1]);
    const auto whole = read(file, 1 << 30, options);
    if (file.kind.format == FileFormat::jsonl) {
      require(read(file, std::max<std::int64_t>(3, file.size / 5), options) == whole, "parts are not the whole");
    }
  } catch (const Error&) {
  }
  return 0;
}
