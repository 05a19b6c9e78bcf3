#pragma once
// What kind of data a file holds: by its name, and where that says nothing, by its first bytes.

#include <optional>
#include <string>

#include "core/fs.h"

namespace kf {

enum class FileFormat { text, jsonl, json, csv, tsv, parquet, arrow, tokens };
enum class Compression { none, gzip, zstd };

struct FileKind {
  FileFormat format = FileFormat::text;
  Compression compression = Compression::none;
  friend bool operator==(const FileKind&, const FileKind&) = default;
};

/// "JSON lines, gzip".
std::string to_text(const FileKind& kind);

/// By the suffixes of the name alone; nothing where they say nothing.
std::optional<FileKind> kind_of_name(const fs::path& path);
/// Whether a name alone says what a file holds: docs.jsonl.gz, part-0.parquet, notes.md.
bool name_says_data(const fs::path& path);

/// By the suffixes of the name (.jsonl.zst), else by the content's start. Compressed text without a telling suffix (docs.gz) is looked
/// into. Throws Code::data when it cannot be opened, is no regular file, or holds neither text nor any known format.
FileKind kind_of_file(const fs::path& path);

}  // namespace kf
