#include "data/tokenizer/tokenizer.h"

#include <algorithm>

#include "core/error.h"

namespace kf {
namespace {

/// Tokens before the newest whose text may still change what it looks like: a decoder may drop the blank before the first token.
constexpr std::size_t kContext = 4;

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

/// Bytes at the end of `text` that begin a UTF-8 character without finishing it.
std::size_t unfinished(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xc0U) != 0x80U) {
      const std::size_t length = 1 + (byte >= 0xc0) + (byte >= 0xe0) + (byte >= 0xf0);
      return back < length ? back : 0;
    }
  }
  return 0;
}

/// Bytes at the end of `text` that the next id may still change. Of tokens that are bytes decoders make U+FFFD until a character is whole.
std::size_t undecided(std::string_view text) {
  std::size_t size = unfinished(text);
  while (text.substr(0, text.size() - size).ends_with(kReplacement)) {
    size += kReplacement.size();
  }
  return size;
}

}  // namespace

SpecialText special_text_named(std::string_view word) {
  if (word == "text") {
    return SpecialText::text;
  }
  if (word == "special") {
    return SpecialText::special;
  }
  KF_CHECK(word == "error", Code::config, "special tokens in a text are \"text\", \"special\" or \"error\", not \"{}\"", word);
  return SpecialText::error;
}

std::size_t Tokenizer::append(std::string_view text, std::vector<std::uint32_t>& out, const EncodeOptions& /*options*/) const {
  for (const std::int64_t id : encode(text)) {
    KF_CHECK(id >= 0 && id < vocab_size(), Code::data, "the tokenizer gives the id {}, and its ids go from 0 to {}", id, vocab_size() - 1);
    out.push_back(static_cast<std::uint32_t>(id));
  }
  return 0;
}

std::vector<std::int64_t> encode_prompt(const Tokenizer& tokenizer, std::string_view text) {
  const EncodeOptions options{SpecialText::special, Surround::prompt};
  std::vector<std::uint32_t> front;
  tokenizer.append("", front, options);
  std::vector<std::uint32_t> ids;
  tokenizer.append(text, ids, options);
  const std::size_t size = front.size();
  const bool twice = size > 0 && ids.size() >= 2 * size && std::equal(front.begin(), front.end(), ids.begin() + static_cast<long>(size));
  return {ids.begin() + static_cast<long>(twice ? size : 0), ids.end()};
}

TextStream::TextStream(const Tokenizer& tokenizer, std::span<const std::int64_t> before) : tokenizer_(tokenizer) {
  if (before.empty() || tokenizer.decode(before.last(1)).empty()) {
    return;  // behind a special token a text begins
  }
  // Not from within a character whose bytes are tokens: at most so far back as the longest has bytes, and one more.
  for (std::size_t count = std::min(kContext, before.size()); count <= std::min(2 * kContext, before.size()); ++count) {
    const std::string text = tokenizer.decode(before.last(count));
    ids_.assign(before.end() - static_cast<std::ptrdiff_t>(count), before.end());
    given_ = text.size();
    if (!text.starts_with(kReplacement)) {
      break;
    }
  }
}

std::string TextStream::push(std::int64_t id) {
  ids_.push_back(id);
  const std::string text = tokenizer_.decode(ids_);
  const std::size_t ready = text.size() - undecided(text);
  std::string out;
  if (ready > given_) {
    out = text.substr(given_, ready - given_);
    given_ = ready;
  }
  if (given_ == text.size() && ids_.size() > 2 * kContext) {
    const std::span<const std::int64_t> tail = std::span<const std::int64_t>(ids_).last(kContext);
    const std::string known = tokenizer_.decode(tail);
    if (!known.empty() && text.ends_with(known)) {  // else a run of bytes would be cut, or the blank before a text's first word lost
      ids_.erase(ids_.begin(), ids_.end() - static_cast<std::ptrdiff_t>(kContext));
      given_ = known.size();
    }
  }
  return out;
}

std::string TextStream::finish() {
  const std::string text = tokenizer_.decode(ids_);
  std::string out = text.size() > given_ ? text.substr(given_) : std::string();
  ids_.clear();
  given_ = 0;
  return out;
}

}  // namespace kf
