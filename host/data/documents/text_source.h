#pragma once
// Documents of text files, where they lie: nothing is copied that can stay mapped.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/fs.h"
#include "data/documents/data_record.h"

namespace kf {

/// A document, or a piece of one.
struct Document {
  std::string_view text;
  bool ends = true;  // false: the rest of it lies elsewhere
};

/// Documents in the order of their files, and what keeps their bytes alive.
struct TextCorpus {
  std::vector<Document> documents;
  std::vector<std::shared_ptr<const void>> owners;
  std::int64_t files = 0;
  std::int64_t skipped = 0;  // files that are no text
  double bytes = 0;          // of text, and
  std::int64_t tokens = 0;   // of ids: of all files, whatever side `documents` is
  std::string fingerprint;
  std::vector<FilePrint> prints;  // of whole contents, but for files left out
};

/// Each file is one document, and UTF-8: other files end the run, or are left out, said and counted where `skip_broken`
/// (data.on_error = "skip"). `hint` ends the message about one and says how to leave it out. Throws Code::data.
TextCorpus read_text(const std::vector<fs::path>& files, const fs::path& root, bool skip_broken, const std::string& hint);

/// Ids of the documents as bytes, each with its end.
std::int64_t byte_tokens(const std::vector<Document>& documents);

}  // namespace kf
