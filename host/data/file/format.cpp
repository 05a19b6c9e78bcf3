#include "data/file/format.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "data/file/decompress.h"
#include "data/file/utf8.h"

namespace kf {
namespace {

constexpr std::pair<std::string_view, FileFormat> kSuffixes[] = {
    {".txt", FileFormat::text},    {".text", FileFormat::text},     {".md", FileFormat::text},         {".markdown", FileFormat::text},
    {".rst", FileFormat::text},    {".tex", FileFormat::text},      {".html", FileFormat::text},       {".xml", FileFormat::text},
    {".py", FileFormat::text},     {".c", FileFormat::text},        {".h", FileFormat::text},          {".cpp", FileFormat::text},
    {".hpp", FileFormat::text},    {".lua", FileFormat::text},      {".sh", FileFormat::text},         {".js", FileFormat::text},
    {".ts", FileFormat::text},     {".rs", FileFormat::text},       {".go", FileFormat::text},         {".java", FileFormat::text},
    {".jsonl", FileFormat::jsonl}, {".ndjson", FileFormat::jsonl},  {".json", FileFormat::json},       {".csv", FileFormat::csv},
    {".tsv", FileFormat::tsv},     {".tab", FileFormat::tsv},       {".parquet", FileFormat::parquet}, {".pq", FileFormat::parquet},
    {".arrow", FileFormat::arrow}, {".feather", FileFormat::arrow}, {".ipc", FileFormat::arrow},       {".npy", FileFormat::tokens},
    {".bin", FileFormat::tokens},
};

Compression compression_of_suffix(const std::string& suffix) {
  if (suffix == ".gz" || suffix == ".gzip") {
    return Compression::gzip;
  }
  return suffix == ".zst" || suffix == ".zstd" ? Compression::zstd : Compression::none;
}

std::optional<FileFormat> format_of_suffix(const std::string& suffix) {
  const auto* const at = std::find_if(std::begin(kSuffixes), std::end(kSuffixes), [&](const auto& row) { return row.first == suffix; });
  return at == std::end(kSuffixes) ? std::nullopt : std::optional(at->second);
}

struct ByName {
  std::optional<FileFormat> format;
  Compression compression = Compression::none;
};

ByName by_name(const fs::path& path) {
  const std::string suffix = lower(path.extension().string());
  const Compression compression = compression_of_suffix(suffix);
  if (compression == Compression::none) {
    return {format_of_suffix(suffix), compression};
  }
  return {format_of_suffix(lower(path.stem().extension().string())), compression};
}

Compression by_magic(std::string_view head) {
  if (head.starts_with("\x1f\x8b")) {
    return Compression::gzip;
  }
  // A frame, or one to pass over, with which pzstd begins.
  const bool skippable = head.size() >= 4 && (static_cast<unsigned char>(head[0]) & 0xf0U) == 0x50 && head.substr(1, 3) == "\x2a\x4d\x18";
  return skippable || head.starts_with("\x28\xb5\x2f\xfd") ? Compression::zstd : Compression::none;
}

/// Valid UTF-8 but for a character that the end of `head` cuts.
bool is_text(std::string_view head) {
  if (head.find('\0') != std::string_view::npos) {
    return false;
  }
  for (std::size_t cut = 0; cut < 4 && cut <= head.size(); ++cut) {
    if (is_utf8(head.substr(0, head.size() - cut))) {
      return true;
    }
  }
  return false;
}

FileFormat by_content(std::string_view head, const fs::path& path) {
  if (head.starts_with("PAR1")) {
    return FileFormat::parquet;
  }
  if (head.starts_with("ARROW1") || head.starts_with("\xff\xff\xff\xff")) {
    return FileFormat::arrow;
  }
  if (head.starts_with("\x93NUMPY")) {
    return FileFormat::tokens;
  }
  const std::string wide = utf16_fault(head);
  KF_CHECK(wide.empty(), Code::data, "{}: {}", path, wide);
  KF_CHECK(is_text(head), Code::data,
           "{} holds neither UTF-8 text nor a format that its start tells (JSON, gzip, zstd, Parquet, Arrow, .npy); raw token files end in "
           ".bin or .npy",
           path);
  const std::string_view body = trim(head);
  if (body.starts_with('{')) {
    // Lines that are whole objects, or one object over many lines.
    return trim(body.substr(0, body.find('\n'))).ends_with('}') ? FileFormat::jsonl : FileFormat::json;
  }
  return body.starts_with('[') ? FileFormat::json : FileFormat::text;
}

std::string head_of(const fs::path& path, Compression compression) {
  std::string head(65536, '\0');
  head.resize(open_bytes(path, compression)->read(head.data(), head.size()));
  return head;
}

/// Formats that nobody puts into gzip, because they compress within; and ids, whose first bytes mean nothing.
bool never_compressed(FileFormat format) {
  return format == FileFormat::parquet || format == FileFormat::arrow || format == FileFormat::tokens;
}

}  // namespace

std::string to_text(const FileKind& kind) {
  constexpr std::array<std::string_view, 8> names{"text", "JSON lines", "JSON", "CSV", "TSV", "Parquet", "Arrow", "tokens"};
  std::string out(names.at(static_cast<std::size_t>(kind.format)));
  if (kind.compression != Compression::none) {
    out += kind.compression == Compression::gzip ? ", gzip" : ", zstd";
  }
  return out;
}

std::optional<FileKind> kind_of_name(const fs::path& path) {
  const ByName named = by_name(path);
  return named.format ? std::optional(FileKind{*named.format, named.compression}) : std::nullopt;
}

bool name_says_data(const fs::path& path) { return kind_of_name(path).has_value(); }

FileKind kind_of_file(const fs::path& path) {
  const ByName named = by_name(path);
  const std::string head = head_of(path, Compression::none);  // also: it is a file, and can be read
  if (named.format && never_compressed(*named.format)) {
    KF_CHECK(named.compression == Compression::none, Code::data, "{}: compressed {} files cannot be read; decompress it first", path,
             to_text(FileKind{*named.format, Compression::none}));
    return {*named.format, Compression::none};
  }
  // What the bytes say counts: .jsonl files that are gzip inside are met in the wild.
  const Compression compression = by_magic(head);
  KF_CHECK(named.compression == Compression::none || named.compression == compression, Code::data,
           "{} is {}: its name says {}, its first bytes do not", path, head.empty() ? "empty (0 bytes)" : "not compressed as it should be",
           named.compression == Compression::gzip ? "gzip" : "zstd");
  const std::string text = compression == Compression::none ? head : head_of(path, compression);
  const FileKind kind{named.format ? *named.format : by_content(text, path), compression};
  if (!never_compressed(kind.format)) {
    const std::string fault = utf16_fault(text);
    KF_CHECK(fault.empty(), Code::data, "{}: {}", path, fault);
  }
  return kind;
}

}  // namespace kf
