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

/// Which side of the hold-out to read.
enum class Side { training, held_out };

/// The documents of one side. A document is held out by a hash of its text, so neither order nor other documents matter. Where that leaves
/// one side without `window` ids (few or long documents), the last `share` of the whole text is held out instead, and the log says so.
/// Throws Code::data when that is too short, too.
TextCorpus take_side(TextCorpus corpus, double share, Side side, std::int64_t window);

/// Ids of the documents as bytes, each with its end.
std::int64_t byte_tokens(const std::vector<Document>& documents);

}  // namespace kf
