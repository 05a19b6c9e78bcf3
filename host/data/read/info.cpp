#include "data/read/info.h"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "core/error.h"
#include "core/log.h"
#include "core/sha256.h"
#include "core/text.h"
#include "data/file/megatron.h"
#include "data/file/utf8.h"

namespace kf {
namespace {

constexpr std::int64_t kIds = 1 << 16;

SourceInfo begin(const SourceFiles& source) {
  SourceInfo info;
  info.tokens = source.tokens;
  info.files = static_cast<std::int64_t>(source.files.size());
  info.file_bytes = source.bytes;
  return info;
}

/// Adds ids as uint32; throws for one that does not fit.
void add_ids(Sha256& digest, const std::vector<std::int64_t>& ids, const fs::path& path) {
  std::string bytes;
  bytes.reserve(ids.size() * 4);
  for (const std::int64_t id : ids) {
    KF_CHECK(id >= 0 && id <= std::numeric_limits<std::uint32_t>::max(), Code::data, "{}: id {} is no token id", path, id);
    for (int shift = 0; shift < 32; shift += 8) {
      bytes += static_cast<char>(id >> shift & 255);
    }
  }
  digest.add(bytes);
}

/// A position in the file by its line, or the row of a table, is what the reader says; here only the files without documents are named.
void warn_if_empty(const SourceFile& file, std::int64_t documents, std::size_t files) {
  if (documents == 0 && files > 1) {
    log::warn("{} holds no document", file.path);
  }
}

/// The type of raw ids that neither a setting nor an index names: as training takes it, and said.
TokenFileOptions options_for(const fs::path& path, const TokenInfoOptions& options) {
  TokenFileOptions out = options.file;
  if (!out.raw_type && lower(path.extension().string()) == ".bin" && !find_megatron_index(path)) {
    out.raw_type = default_token_type(options.vocab_size);
    log::info("{}: raw ids, taken for {} by model.vocab_size = {}; data.token_dtype names another type", path,
              token_type_name(*out.raw_type), options.vocab_size);
  }
  return out;
}

}  // namespace

SourceInfo inspect_text(const SourceFiles& source, const ReadOptions& options) {
  SourceInfo info = begin(source);
  Skipped skipped;
  Sha256 digest;
  std::int64_t documents = 0;
  for (const SourceFile& file : source.files) {
    const std::unique_ptr<RecordReader> reader = open_records(file, {}, options, skipped);
    const std::int64_t before = documents;
    for (Record record; reader->next(record); ++documents) {
      if (documents > 0) {
        digest.add(std::string_view("\0", 1));
      }
      digest.add(record.text);
      info.characters += count_characters(record.text);
      info.bytes += static_cast<std::int64_t>(record.text.size());
    }
    warn_if_empty(file, documents - before, source.files.size());
  }
  info.skipped = skipped.count();
  KF_CHECK(documents > 0, Code::data, "{} no document{}",
           source.files.size() == 1 ? source.files[0].path.string() + " holds" : "the files hold",
           info.skipped > 0 ? format("; {} records were left out", info.skipped) : "");
  info.documents = documents;
  info.sha256 = digest.hex();
  return info;
}

SourceInfo inspect_tokens(const SourceFiles& source, const TokenInfoOptions& options) {
  SourceInfo info = begin(source);
  Sha256 digest;
  std::int64_t ends = 0;
  std::int64_t indexed = 0;
  bool all_indexed = true;
  for (const SourceFile& source_file : source.files) {
    const TokenFile file(source_file.path, options_for(source_file.path, options));
    const std::string dtype(token_type_name(file.type()));
    KF_CHECK(info.dtype.empty() || info.dtype == dtype, Code::data, "{} holds {}, the files before it {}", source_file.path, dtype,
             info.dtype);
    info.dtype = dtype;
    for (std::int64_t at = 0; at < file.tokens(); at += kIds) {
      std::vector<std::int64_t> ids(static_cast<std::size_t>(std::min(kIds, file.tokens() - at)));
      file.read(at, ids);
      add_ids(digest, ids, source_file.path);
      ends += options.eos_id ? std::count(ids.begin(), ids.end(), *options.eos_id) : 0;
    }
    info.ids += file.tokens();
    if (const auto index = find_megatron_index(source_file.path)) {
      indexed += static_cast<std::int64_t>(index->document_starts.size()) - 1;
    } else {
      all_indexed = false;
    }
  }
  KF_CHECK(info.ids > 0, Code::data, "{} no token", source.files.size() == 1 ? source.files[0].path.string() + " holds" : "the files hold");
  if (all_indexed) {
    info.documents = indexed;
  } else if (options.eos_id) {
    info.documents = ends;
  }
  info.sha256 = digest.hex();
  return info;
}

}  // namespace kf
