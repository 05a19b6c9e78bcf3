#pragma once
// Documents of text files, where they lie: nothing is copied that can stay mapped.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/fs.h"

namespace kf {

/// A document, or a piece of one.
struct Document {
  std::string_view text;
  bool ends = true;  // false: the rest of it lies elsewhere
};

/// Documents in the order of their files, and what keeps their bytes alive.
struct TextCorpus {
  std::vector<Document> documents;  // none is empty
  std::vector<std::shared_ptr<const void>> owners;
  std::int64_t files = 0;
  double bytes = 0;         // of text, and
  std::int64_t tokens = 0;  // of ids: of all files, whatever side `documents` is
  std::string fingerprint;
};

/// Whether a name says JSON lines: `.jsonl`, `.ndjson`.
bool is_jsonl_name(const fs::path& path);
/// Whether a name says text, whatever the bytes: `.txt`, `.md`, `.py`, ...
bool is_text_name(const fs::path& path);

/// A JSON-lines file has a document in `field` of each line, any other file is one document. A file whose name does not say text must be
/// valid UTF-8. `hint` ends the message when one is not, and says how to leave it out. Throws Code::data.
TextCorpus read_text(const std::vector<fs::path>& files, const fs::path& root, const std::string& field, const std::string& hint);

/// Ids of the documents as bytes, each with its end.
std::int64_t byte_tokens(const std::vector<Document>& documents);

}  // namespace kf
