#include "data/text_source.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "core/text.h"
#include "data/digest.h"
#include "data/jsonl.h"

namespace kf {
namespace {

// Smaller files are copied: a map for each of a hundred thousand would meet the kernel's limit (vm.max_map_count, 65530).
constexpr std::size_t kMapFrom = 1 << 20;

std::string_view view(const MappedFile& file) { return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}; }

constexpr std::string_view kMark = "\xef\xbb\xbf";  // the byte order mark that some editors write: no part of the text

/// An empty one, too: it is its end.
void add_document(TextCorpus& corpus, std::string_view text) {
  corpus.documents.push_back({text, true});
  corpus.bytes += static_cast<double>(text.size());
}

void add_jsonl(TextCorpus& corpus, const MappedFile& file, const std::string& field) {
  // Escapes are never shorter than what they stand for, so the texts fit and the views stay where they are.
  const auto arena = std::make_shared<std::string>();
  arena->reserve(file.bytes().size());
  for_each_jsonl_text(view(file), field, file.path(), [&](std::string_view text) {
    const std::size_t start = arena->size();
    arena->append(text);
    add_document(corpus, std::string_view(*arena).substr(start));
  });
  corpus.owners.push_back(arena);
}

std::string_view without_mark(std::string_view text) { return text.starts_with(kMark) ? text.substr(kMark.size()) : text; }

void add_plain(TextCorpus& corpus, MappedFile file) {
  if (file.bytes().size() >= kMapFrom) {
    const auto owner = std::make_shared<const MappedFile>(std::move(file));
    add_document(corpus, without_mark(view(*owner)));
    corpus.owners.push_back(owner);
  } else {
    const auto owner = std::make_shared<const std::string>(view(file));
    add_document(corpus, without_mark(*owner));
    corpus.owners.push_back(owner);
  }
}

bool looks_like_text(std::string_view content) { return content.find('\0') == std::string_view::npos && is_utf8(content); }

}  // namespace

bool is_jsonl_name(const fs::path& path) {
  const std::string suffix = lower(path.extension().string());
  return suffix == ".jsonl" || suffix == ".ndjson";
}

bool is_text_name(const fs::path& path) {
  constexpr std::array<std::string_view, 30> known{".txt", ".text", ".md",  ".rst", ".py",  ".pyi",  ".c",   ".h",    ".cc",   ".cpp",
                                                   ".hpp", ".cu",   ".lua", ".js",  ".ts",  ".java", ".go",  ".rs",   ".rb",   ".sh",
                                                   ".pl",  ".html", ".xml", ".tex", ".csv", ".tsv",  ".log", ".toml", ".yaml", ".yml"};
  return std::find(known.begin(), known.end(), lower(path.extension().string())) != known.end();
}

TextCorpus read_text(const std::vector<fs::path>& files, const fs::path& root, const std::string& field, const std::string& hint) {
  TextCorpus corpus;
  Digest digest;
  for (const fs::path& path : files) {
    MappedFile file(path);
    digest.add_file(path.lexically_relative(root).string(), view(file));
    if (is_jsonl_name(path)) {
      add_jsonl(corpus, file, field);
    } else {
      KF_CHECK(is_text_name(path) || looks_like_text(view(file)), Code::data, "{} is not text (no valid UTF-8){}", path, hint);
      add_plain(corpus, std::move(file));
    }
    ++corpus.files;
  }
  corpus.tokens = byte_tokens(corpus.documents);
  corpus.fingerprint = digest.hex();
  return corpus;
}

std::int64_t byte_tokens(const std::vector<Document>& documents) {
  std::int64_t ids = 0;
  for (const Document& document : documents) {
    ids += static_cast<std::int64_t>(document.text.size()) + (document.ends ? 1 : 0);
  }
  return ids;
}

}  // namespace kf
