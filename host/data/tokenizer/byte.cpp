#include <algorithm>

#include "core/error.h"
#include "core/sha256.h"
#include "data/tokenizer/tokenizer.h"

namespace kf {

ByteTokenizer::ByteTokenizer(std::int64_t model_vocab) : model_vocab_(model_vocab) {
  KF_CHECK(
      model_vocab >= kByteVocab, Code::data,
      "model.vocab_size = {} is too small for text read as bytes: ids 0 to 255 are the bytes and 256 ends a document; set model.vocab_size "
      "to {} or more",
      model_vocab, kByteVocab);
}

std::vector<std::int64_t> ByteTokenizer::encode(std::string_view text) const {
  const auto* first = reinterpret_cast<const unsigned char*>(text.data());
  return {first, first + text.size()};
}

std::size_t ByteTokenizer::append(std::string_view text, std::vector<std::uint32_t>& out, const EncodeOptions& /*options*/) const {
  const auto* first = reinterpret_cast<const unsigned char*>(text.data());
  out.insert(out.end(), first, first + text.size());
  return 0;
}

std::string ByteTokenizer::content_hash() const { return sha256("bytes"); }

std::string ByteTokenizer::decode(std::span<const std::int64_t> ids) const {
  std::string out;
  out.reserve(ids.size());
  for (const std::int64_t id : ids) {
    KF_CHECK(id >= 0 && id < model_vocab_, Code::data, "id {} cannot be decoded: ids go from 0 to {}", id, model_vocab_ - 1);
    if (id < kByteEos) {
      out += static_cast<char>(id);
    }
  }
  return out;
}

}  // namespace kf
