#include "generate/answer_stream.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/text.h"

namespace kf {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// Bytes of the character that this byte begins; 0 for one that begins none.
std::size_t length_of(unsigned char lead) {
  if (lead < 0x80) {
    return 1;
  }
  if (lead < 0xC2 || lead >= 0xF5) {
    return 0;
  }
  return 2 + (lead >= 0xE0) + (lead >= 0xF0);
}

/// Whether `bytes` can be the beginning of a longer character.
bool may_continue(std::string_view bytes) {
  const std::size_t length = length_of(static_cast<unsigned char>(bytes[0]));
  if (bytes.size() >= length) {
    return false;
  }
  // Some continuation fits: the lowest and the highest second byte cover the forms that are overlong or surrogates.
  for (const char fill : {'\x80', '\x90', '\xBF'}) {
    std::string whole(bytes);
    whole.append(length - whole.size(), fill);
    if (is_utf8(whole)) {
      return true;
    }
  }
  return false;
}

/// The first place of any stop text, npos without one.
std::size_t find_stop(const std::string& text, const std::vector<std::string>& stop) {
  std::size_t first = std::string::npos;
  for (const std::string& one : stop) {
    first = std::min(first, text.find(one));
  }
  return first;
}

/// How many bytes at the end may begin a stop text.
std::size_t undecided(const std::string& text, const std::vector<std::string>& stop) {
  std::size_t most = 0;
  for (const std::string& one : stop) {
    for (std::size_t n = std::min(text.size(), one.size() - 1); n > most; --n) {
      if (text.ends_with(std::string_view(one).substr(0, n))) {
        most = n;
      }
    }
  }
  return most;
}

/// The special token with which a text begins; nothing where it begins with text.
std::optional<std::int64_t> special_start(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<std::uint32_t> ids;
  if (tokenizer.reads_special()) {
    tokenizer.append(text, ids, {SpecialText::special});
  }
  const std::optional<std::int64_t> named = tokenizer.token_id(text);  // where special tokens are never read from text
  for (const std::optional<std::int64_t> id : {ids.empty() ? std::nullopt : std::optional<std::int64_t>(ids.front()), named}) {
    if (id && tokenizer.decode(std::span(&*id, 1)).empty()) {
      return id;
    }
  }
  return std::nullopt;
}

}  // namespace

AnswerStream::AnswerStream(const Tokenizer& tokenizer, std::span<const std::int64_t> prompt, std::vector<std::string> stop)
    : text_(tokenizer, prompt), stop_(std::move(stop)) {
  std::erase(stop_, std::string());  // found everywhere, and refused where options are read
  for (const std::string& text : stop_) {
    if (const std::optional<std::int64_t> id = special_start(tokenizer, text)) {
      stop_ids_.push_back(*id);
    }
  }
}

/// Of what is held back and `text` behind it, the part that no stop text can begin in.
std::string AnswerStream::certain(std::string_view text) {
  pending_ += text;
  std::size_t size = find_stop(pending_, stop_);
  stopped_ = stopped_ || size != std::string::npos;
  if (size == std::string::npos) {
    size = pending_.size() - undecided(pending_, stop_);
  }
  std::string out = pending_.substr(0, size);
  pending_.erase(0, size);
  return out;
}

std::string AnswerStream::push(std::int64_t id) {
  if (std::find(stop_ids_.begin(), stop_ids_.end(), id) == stop_ids_.end()) {
    return certain(text_.push(id));
  }
  std::string out = finish();
  stopped_ = true;
  return out;
}

std::string AnswerStream::finish() {
  if (stopped_) {
    return {};
  }
  std::string out = certain(text_.finish());
  return stopped_ ? out : out + std::exchange(pending_, {});
}

std::string WholeCharacters::push(std::string_view bytes) {
  pending_ += bytes;
  std::string out;
  std::size_t at = 0;
  while (at < pending_.size()) {
    const std::string_view rest = std::string_view(pending_).substr(at);
    const std::size_t length = length_of(static_cast<unsigned char>(rest[0]));
    if (length > 0 && rest.size() >= length && is_utf8(rest.substr(0, length))) {
      out += rest.substr(0, length);
      at += length;
      continue;
    }
    if (length > rest.size() && may_continue(rest)) {
      break;
    }
    // As the standard advises, one mark for the longest beginning of a character, or for a single byte.
    std::size_t bad = 1;
    while (bad + 1 < length && bad + 1 <= rest.size() && may_continue(rest.substr(0, bad + 1))) {
      ++bad;
    }
    out += kReplacement;
    at += bad;
  }
  pending_.erase(0, at);
  return out;
}

std::string WholeCharacters::finish() {
  const bool some = !pending_.empty();
  pending_.clear();
  return some ? std::string(kReplacement) : std::string();
}

std::string valid_utf8(std::string_view bytes) {
  WholeCharacters characters;
  std::string out = characters.push(bytes);
  return out + characters.finish();
}

}  // namespace kf
