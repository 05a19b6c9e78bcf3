#pragma once
// What a source holds, counted and digested: `kf-host data info`.

#include <cstdint>
#include <optional>
#include <string>

#include "data/file/token_file.h"
#include "data/read/reader.h"

namespace kf {

struct SourceInfo {
  std::string name;  // as the user gave it
  bool tokens = false;
  std::int64_t files = 0;
  std::int64_t file_bytes = 0;
  std::optional<std::int64_t> documents;  // of ids: where an index or the id that ends a document says so
  std::int64_t characters = 0;            // of text: code points,
  std::int64_t bytes = 0;                 // and bytes of UTF-8
  std::int64_t skipped = 0;               // records left out
  std::int64_t ids = 0;                   // of token files,
  std::string dtype;                      // and their type
  std::string sha256;                     // of all texts with a NUL byte between two; of ids as uint32, little-endian
};

struct TokenInfoOptions {
  TokenFileOptions file;
  std::optional<std::int64_t> eos_id;
  std::int64_t vocab_size = 32000;  // model.vocab_size, given or not: the type of raw files when nothing says it
};

/// Reads every document. Throws Code::data, also when there is none.
SourceInfo inspect_text(const SourceFiles& source, const ReadOptions& options);
/// Reads every id.
SourceInfo inspect_tokens(const SourceFiles& source, const TokenInfoOptions& options);

}  // namespace kf
