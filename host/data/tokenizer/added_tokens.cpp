#include "data/tokenizer/added_tokens.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "data/tokenizer/unicode.h"

namespace kf {
namespace {

bool word_before(std::string_view text, std::size_t at) {
  return at > 0 && unicode::is_word(unicode::decode_before(text.data(), text.data() + at).cp);
}
bool word_after(std::string_view text, std::size_t at) {
  return at < text.size() && unicode::is_word(unicode::decode(text.data() + at, text.data() + text.size()).cp);
}

std::size_t blanks_before(std::string_view text, std::size_t at) {
  while (at > 0) {
    const unicode::Decoded c = unicode::decode_before(text.data(), text.data() + at);
    if (!unicode::is(c.cp, unicode::kSpace)) {
      break;
    }
    at -= c.size;
  }
  return at;
}
std::size_t blanks_after(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    const unicode::Decoded c = unicode::decode(text.data() + at, text.data() + text.size());
    if (!unicode::is(c.cp, unicode::kSpace)) {
      break;
    }
    at += c.size;
  }
  return at;
}

/// <|name|>, with bars of ASCII or of full width: some tokenizers do not call the marks of their chats special (DeepSeek's <｜User｜>).
bool looks_like_mark(std::string_view name) {
  return (name.starts_with("<|") && name.ends_with("|>")) || (name.starts_with("<\xef\xbd\x9c") && name.ends_with("\xef\xbd\x9c>"));
}

}  // namespace

void AddedTokens::add(const AddedToken& token, std::string_view text) {
  if (text.empty()) {
    return;
  }
  trie_.add(text, static_cast<std::uint32_t>(tokens_.size()));
  tokens_.push_back(std::make_unique<AddedToken>(token));
  if (starts_.find(text[0]) == std::string::npos) {
    starts_ += text[0];
  }
}

std::size_t AddedTokens::next_start(std::string_view text, std::size_t from) const {
  if (starts_.size() == 1) {
    const void* found = from < text.size() ? std::memchr(text.data() + from, starts_[0], text.size() - from) : nullptr;
    return found == nullptr ? text.size() : static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
  }
  while (from < text.size() && !trie_.begins(text[from])) {
    ++from;
  }
  return from;
}

std::size_t AddedTokens::find(std::string_view text, SpecialText special, std::vector<TextStretch>& out,
                              std::span<const ByteRange> written) const {
  auto is_written = [&, at = std::size_t{0}](std::size_t begin, std::size_t end) mutable {
    while (at < written.size() && written[at].end < end) {
      ++at;
    }
    return at < written.size() && written[at].begin <= begin;
  };
  std::size_t count = 0;
  std::size_t covered = 0;
  for (std::size_t at = empty() ? text.size() : next_start(text, 0); at < text.size(); at = next_start(text, at)) {
    const Trie::Match match = trie_.longest(text.substr(at));
    if (match.size == 0) {
      ++at;
      continue;
    }
    const AddedToken& token = *tokens_[match.value];
    std::size_t begin = at;
    std::size_t end = at + match.size;
    at = end;
    const bool mark = token.special || (!written.empty() && looks_like_mark(token.content));
    const bool meant = mark && is_written(begin, end);
    if (mark && !meant) {
      ++count;
      KF_CHECK(special != SpecialText::error, Code::data,
               "the text holds the special token {} at byte {}; take it out, or say what it is: special tokens as text or as special",
               token.content, begin);
    }
    if ((mark && !meant && special == SpecialText::text) || (token.single_word && (word_before(text, begin) || word_after(text, end)))) {
      continue;
    }
    if (token.lstrip) {
      begin = std::max(blanks_before(text, begin), covered);
    }
    if (token.rstrip) {
      end = blanks_after(text, end);
    }
    if (covered < begin) {
      out.push_back({covered, begin, nullptr});
    }
    if (begin < end) {  // else it lies in the blanks that the one before took
      out.push_back({begin, end, &token});
      covered = end;
    }
  }
  if (covered < text.size()) {
    out.push_back({covered, text.size(), nullptr});
  }
  return count;
}

}  // namespace kf
