#include "data/tokenizer/rank_tokenizer.h"

#include <algorithm>

#include "core/error.h"

namespace kf {

RankTokenizer::RankTokenizer(RankSpec spec, std::string_view content, const SpecialIds& ids)
    : kind_(std::move(spec.kind)),
      special_names_(std::move(spec.special)),
      special_in_text_(spec.special_in_text),
      before_(std::move(spec.before)),
      after_(std::move(spec.after)),
      pattern_(scan::known_pattern(spec.pattern, scan::Dialect::rust)),
      bytes_(ByteBpe::from_ranks(std::move(spec.tokens))) {
  if (!pattern_) {
    regex_.emplace(spec.pattern, scan::Dialect::rust, spec.where);
  }
  size_ = bytes_.tokens().end();
  for (const auto& [id, name] : special_names_) {
    AddedToken token;
    token.content = name;
    token.id = id;
    token.special = true;
    special_tokens_.add(token, name);
    size_ = std::max<std::int64_t>(size_, std::int64_t{id} + 1);
  }
  std::string described = spec.pattern + "\n";
  for (const auto& [id, name] : special_names_) {
    described += format("{} {}\n", id, name);
  }
  identify(kind_, described + std::string(content), ids);
}

std::size_t RankTokenizer::append(std::string_view text, std::vector<std::uint32_t>& out, const EncodeOptions& options) const {
  const auto scratch = scratch_.take();
  if (options.surround != Surround::nothing) {
    out.insert(out.end(), before_.begin(), before_.end());
  }
  scratch->stretches.clear();
  const SpecialText policy = special_in_text_ || options.special == SpecialText::error ? options.special : SpecialText::text;
  const std::size_t count = special_tokens_.find(text, policy, scratch->stretches, options.written);
  for (const TextStretch& stretch : scratch->stretches) {
    if (stretch.token != nullptr) {
      out.push_back(stretch.token->id);
    } else {
      encode_stretch(text.substr(stretch.begin, stretch.end - stretch.begin), out, *scratch);
    }
  }
  if (options.surround == Surround::text) {
    out.insert(out.end(), after_.begin(), after_.end());
  }
  return count;
}

void RankTokenizer::encode_stretch(std::string_view text, std::vector<std::uint32_t>& out, Scratch& scratch) const {
  if (pattern_) {
    bytes_.encode_all(text, *pattern_, out, scratch.bytes);
    return;
  }
  // What the pattern does not match is no token, as in tiktoken; only bytes that are no UTF-8 are kept, as pieces of their own.
  std::size_t done = 0;
  const auto keep_invalid = [&](std::size_t until) {
    const char* end = text.data() + text.size();
    for (; done < until; done += unicode::decode(text.data() + done, end).size) {
      if (unicode::decode(text.data() + done, end).cp == unicode::kInvalid) {
        bytes_.encode(text.substr(done, 1), out, scratch.bytes);
      }
    }
  };
  regex_->each_match(text, [&](std::size_t begin, std::size_t end) {
    keep_invalid(begin);
    bytes_.encode(text.substr(begin, end - begin), out, scratch.bytes);
    done = end;
    return true;
  });
  keep_invalid(text.size());
}

std::optional<std::string> RankTokenizer::token(std::int64_t id) const {
  if (id < 0 || id >= size_) {
    return std::nullopt;
  }
  if (const auto special = special_names_.find(static_cast<std::uint32_t>(id)); special != special_names_.end()) {
    return special->second;
  }
  const auto found = bytes_.tokens().token(static_cast<std::uint32_t>(id));
  return found ? std::optional(std::string(*found)) : std::nullopt;
}

std::optional<std::int64_t> RankTokenizer::token_id(std::string_view token) const {
  for (const auto& [id, name] : special_names_) {
    if (name == token) {
      return id;
    }
  }
  const auto found = bytes_.tokens().find(token);
  return found ? std::optional<std::int64_t>(*found) : std::nullopt;
}

std::string RankTokenizer::summary() const { return format("{}, {} ids", kind_, grouped(size_)); }

std::string RankTokenizer::text_of(const std::vector<std::uint32_t>& ids, bool with_special) const {
  std::string out;
  for (const std::uint32_t id : ids) {
    if (const auto special = special_names_.find(id); special != special_names_.end()) {
      out += with_special ? special->second : std::string();
    } else if (const auto bytes = bytes_.tokens().token(id)) {
      out += *bytes;
    }
  }
  return out;
}

}  // namespace kf
