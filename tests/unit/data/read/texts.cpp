#include "unit/data/read/texts.h"

#include "core/error.h"
#include "core/sha256.h"
#include "core/text.h"

namespace kf::test {

SourceFiles source_of(const fs::path& path) {
  SourceRequest request;
  request.paths = {path.string()};
  return resolve_source(request);
}

std::vector<std::string> texts_of(const fs::path& path, const ReadOptions& options, Skipped& skipped) {
  std::vector<std::string> texts;
  for (const SourceFile& file : source_of(path).files) {
    const std::unique_ptr<RecordReader> reader = open_records(file, {}, options, skipped);
    for (Record record; reader->next(record);) {
      texts.emplace_back(record.text);
    }
  }
  return texts;
}

std::vector<std::string> texts_of(const fs::path& path, const ReadOptions& options) {
  Skipped skipped;
  return texts_of(path, options, skipped);
}

std::vector<std::string> texts_in_parts(const fs::path& path, std::int64_t bytes, const ReadOptions& options) {
  Skipped skipped;
  std::vector<std::string> texts;
  const SourceFiles source = source_of(path);
  for (const FileSpan& part : split_file(source.files.at(0), bytes)) {
    const std::unique_ptr<RecordReader> reader = open_records(source.files[0], part, options, skipped);
    for (Record record; reader->next(record);) {
      texts.emplace_back(record.text);
    }
  }
  return texts;
}

std::string error_of(const fs::path& path, const ReadOptions& options) {
  try {
    texts_of(path, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string digest_of(const std::vector<std::string>& texts) { return sha256(join(texts, std::string_view("\0", 1))); }

}  // namespace kf::test
