#pragma once
// Documents of text to ids: what is put around a document, which ids count for the loss, what is worth noting.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/cache/manifest.h"
#include "data/read/reader.h"
#include "data/tokenizer/tokenizer.h"

namespace kf::cache {

struct EncodeRules {
  const Tokenizer* tokenizer = nullptr;
  EncodeOptions options;
  std::optional<std::int64_t> bos;  // begins every document
  std::optional<std::int64_t> eos;  // ends every document
  std::int64_t vocab_size = 0;      // model.vocab_size: ids are below it
  bool mask = false;                // whether ids that do not count are told apart
};

/// Documents on their way from a reader to the tokenizer.
struct TextBatch {
  struct Item {
    std::size_t begin = 0;  // of its text in `text`
    std::size_t end = 0;
    bool masked = false;
    std::vector<ByteRange> counted;
    std::vector<ByteRange> written;
    std::size_t file = 0;     // of the source
    std::int64_t number = 0;  // of the record, for messages
  };
  std::string text;
  std::vector<Item> items;
};

struct IdBatch {
  std::vector<std::uint32_t> ids;
  std::vector<std::uint8_t> mask;     // with EncodeRules::mask: one an id
  std::vector<std::int64_t> lengths;  // of each document
  std::vector<std::uint64_t> hashes;
  std::vector<std::size_t> files;
  std::vector<std::int64_t> text_bytes;
  std::int64_t empty = 0;
  std::int64_t special_names = 0;
  std::int64_t max_id = -1;
};

/// Every document gets exactly one end, also an empty one and one whose text ends with it as a special token; the same for its beginning.
/// With ranges that count, the text is cut at their borders and each piece is encoded for itself: no token is on both sides, and what comes
/// before an answer has the ids that it has as a prompt. The end counts where the text before it does. Throws Code::data naming the file
/// and the record.
IdBatch encode_batch(const TextBatch& batch, const EncodeRules& rules, const SourceFiles& files);

}  // namespace kf::cache
