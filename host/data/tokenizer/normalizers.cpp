#include "data/tokenizer/normalizers.h"

#include <utf8proc.h>

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "core/error.h"
#include "data/tokenizer/byte_letters.h"
#include "data/tokenizer/charsmap.h"
#include "data/tokenizer/regex.h"
#include "data/tokenizer/unicode.h"
#include "data/tokenizer/unicode_older.h"

namespace kf {
namespace {

using unicode::Category;

/// A normalizer that is a function.
class Function final : public Normalizer {
 public:
  explicit Function(std::function<std::string(std::string_view)> body, bool keeps_ascii = false)
      : body_(std::move(body)), keeps_ascii_(keeps_ascii) {}
  std::string apply(std::string_view text) const override { return body_(text); }
  bool keeps_ascii() const override { return keeps_ascii_; }

 private:
  std::function<std::string(std::string_view)> body_;
  bool keeps_ascii_;
};

class Chain final : public Normalizer {
 public:
  explicit Chain(std::vector<std::unique_ptr<Normalizer>> parts) : parts_(std::move(parts)) {}
  std::string apply(std::string_view text) const override {
    std::string out(text);
    for (const auto& part : parts_) {
      out = part->apply(out);
    }
    return out;
  }
  bool keeps_ascii() const override {
    return std::all_of(parts_.begin(), parts_.end(), [](const auto& part) { return part->keeps_ascii(); });
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> parts_;
};

/// Calls body(cp, out) for each character.
template <class Body>
std::string each(std::string_view text, const Body& body) {
  std::string out;
  out.reserve(text.size());
  const char* end = text.data() + text.size();
  for (const char* p = text.data(); p < end;) {
    const unicode::Decoded c = unicode::decode(p, end);
    body(c.cp, out);
    p += c.size;
  }
  return out;
}

/// Without the characters of these categories, but for those that are `kept`.
template <std::size_t count>
std::string without(std::string_view text, std::uint32_t mask, const unicode::Range (&kept)[count]) {
  return each(text, [mask, &kept](std::uint32_t cp, std::string& out) {
    // Four characters were marks in older Unicode: two of each kind.
    const bool was_mark = count == std::size(unicode::kNoMark) ? cp == 0x1cf2 || cp == 0x1cf3 : cp == 0x1734 || cp == 0x1171e;
    if ((!unicode::is(cp, mask) && !was_mark) || unicode::within(kept, cp)) {
      unicode::append(out, cp);
    }
  });
}

std::string strip(std::string_view text, bool left, bool right) {
  const auto space_at = [](unicode::Decoded c) { return unicode::is(c.cp, unicode::kSpace); };
  while (left && !text.empty()) {
    const unicode::Decoded c = unicode::decode(text.data(), text.data() + text.size());
    if (!space_at(c)) {
      break;
    }
    text.remove_prefix(c.size);
  }
  while (right && !text.empty()) {
    const unicode::Decoded c = unicode::decode_before(text.data(), text.data() + text.size());
    if (!space_at(c)) {
      break;
    }
    text.remove_suffix(c.size);
  }
  return std::string(text);
}

std::string replace_text(std::string_view text, const std::string& pattern, const std::string& content) {
  if (pattern.empty()) {
    return std::string(text);
  }
  std::string out;
  std::size_t from = 0;
  for (std::size_t at = text.find(pattern); at != std::string_view::npos; at = text.find(pattern, from)) {
    out.append(text, from, at - from).append(content);
    from = at + pattern.size();
  }
  return out.append(text, from);
}

std::string replace_regex(std::string_view text, const Regex& regex, const std::string& content) {
  std::string out;
  std::size_t from = 0;
  regex.each_match(text, [&](std::size_t begin, std::size_t end) {
    out.append(text, from, begin - from).append(content);
    from = end;
    return true;
  });
  return out.append(text, from);
}

/// SentencePiece's nmt rules, as in Hugging Face's Nmt.
std::string nmt(std::string_view text) {
  return each(text, [](std::uint32_t cp, std::string& out) {
    const bool dropped = (cp >= 1 && cp <= 8) || cp == 0xb || (cp >= 0xe && cp <= 0x1f) || cp == 0x7f || cp == 0x8f || cp == 0x9f;
    const bool blank = cp == 9 || cp == 0xa || cp == 0xc || cp == 0xd || cp == 0x1680 || (cp >= 0x200b && cp <= 0x200f) || cp == 0x2028 ||
                       cp == 0x2029 || cp == 0x2581 || cp == 0xfeff || cp == 0xfffd;
    if (!dropped) {
      unicode::append(out, blank ? ' ' : cp);
    }
  });
}

bool is_chinese(std::uint32_t cp) {
  return (cp >= 0x4e00 && cp <= 0x9fff) || (cp >= 0x3400 && cp <= 0x4dbf) || (cp >= 0x20000 && cp <= 0x2a6df) ||
         (cp >= 0x2a700 && cp <= 0x2b73f) || (cp >= 0x2b740 && cp <= 0x2b81f) || (cp >= 0x2b920 && cp <= 0x2ceaf) ||
         (cp >= 0xf900 && cp <= 0xfaff) || (cp >= 0x2f800 && cp <= 0x2fa1f);
}

struct Bert {
  bool clean_text;
  bool chinese;
  bool strip_accents;
  bool lowercase;

  std::string operator()(std::string_view text) const {
    std::string out(text);
    if (clean_text) {
      out = each(out, [](std::uint32_t cp, std::string& kept) {
        constexpr std::uint32_t control = unicode::bits(Category::Cc, Category::Cf, Category::Co);
        const bool blank = cp == '\t' || cp == '\n' || cp == '\r' || unicode::is(cp, unicode::kSpace);
        const bool dropped =
            cp == 0 || cp == 0xfffd ||
            (unicode::is(cp, control) && !(cp == '\t' || cp == '\n' || cp == '\r') && !unicode::within(unicode::kNoBertControl, cp));
        if (!dropped) {
          unicode::append(kept, blank ? ' ' : cp);
        }
      });
    }
    if (chinese) {
      out = each(out, [](std::uint32_t cp, std::string& kept) {
        kept += is_chinese(cp) ? " " : "";
        unicode::append(kept, cp);
        kept += is_chinese(cp) ? " " : "";
      });
    }
    if (strip_accents) {
      out = without(unicode::normalize(out, unicode::Form::nfd), unicode::bit(Category::Mn), unicode::kNoBertMark);
    }
    return lowercase ? unicode::lowercase(out) : out;
  }
};

/// Where the grapheme that begins a text ends.
std::size_t grapheme_size(std::string_view text) {
  const char* begin = text.data();
  const char* end = begin + text.size();
  unicode::Decoded before = unicode::decode(begin, end);
  const char* p = begin + before.size;
  utf8proc_int32_t state = 0;
  while (p < end) {
    const unicode::Decoded next = unicode::decode(p, end);
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(before.cp), static_cast<utf8proc_int32_t>(next.cp), &state)) {
      break;
    }
    before = next;
    p += next.size;
  }
  return static_cast<std::size_t>(p - begin);
}

/// A map's form of a short grapheme as a whole (of the shortest beginning that the map knows, which is how the original reads its trie),
/// else of its characters one by one.
std::string precompiled(const Charsmap& map, std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::string_view grapheme = text.substr(0, grapheme_size(text));
    text.remove_prefix(grapheme.size());
    const Charsmap::Match whole = grapheme.size() < 6 ? map.shortest(grapheme) : Charsmap::Match{};
    if (whole.size > 0) {
      out += whole.normal;
      continue;
    }
    const char* end = grapheme.data() + grapheme.size();
    for (const char* p = grapheme.data(); p < end;) {
      const std::string_view part(p, unicode::decode(p, end).size);
      const Charsmap::Match match = map.shortest(part);
      out += match.size > 0 ? match.normal : part;
      p += part.size();
    }
  }
  return out;
}

std::unique_ptr<Normalizer> function(std::function<std::string(std::string_view)> body, bool keeps_ascii = false) {
  return std::make_unique<Function>(std::move(body), keeps_ascii);
}

std::unique_ptr<Normalizer> make_replace(const json::Place& spec) {
  const std::string content = spec.at("content").as_string();
  const json::Place pattern = spec.at("pattern");
  if (pattern.has("String")) {
    return function([text = pattern.at("String").as_string(), content](std::string_view s) { return replace_text(s, text, content); });
  }
  const json::Place written = pattern.at("Regex");
  KF_CHECK(content.find('$') == std::string::npos, Code::data,
           "{}: groups ($1) in the replacement of a regular expression are not supported", spec.path("content"));
  auto regex = std::make_shared<Regex>(written.as_string(), scan::Dialect::onig, written.path());
  return function([regex, content](std::string_view s) { return replace_regex(s, *regex, content); });
}

std::unique_ptr<Normalizer> make_bert(const json::Place& spec) {
  const bool lowercase = spec.bool_or("lowercase", true);
  const Bert bert{spec.bool_or("clean_text", true), spec.bool_or("handle_chinese_chars", true), spec.bool_or("strip_accents", lowercase),
                  lowercase};
  spec.warn_unknown({"type", "clean_text", "handle_chinese_chars", "strip_accents", "lowercase"});
  return function(bert);
}

std::unique_ptr<Normalizer> make_chain(const json::Place& spec) {
  const json::Place list = spec.at("normalizers");
  std::vector<std::unique_ptr<Normalizer>> parts;
  for (std::size_t i = 0; i < list.size(); ++i) {
    parts.push_back(make_normalizer(list.at(i)));
  }
  return std::make_unique<Chain>(std::move(parts));
}

std::optional<unicode::Form> form_named(const std::string& type) {
  using unicode::Form;
  for (const auto& [name, form] :
       {std::pair("NFC", Form::nfc), std::pair("NFD", Form::nfd), std::pair("NFKC", Form::nfkc), std::pair("NFKD", Form::nfkd)}) {
    if (type == name) {
      return form;
    }
  }
  return std::nullopt;
}

}  // namespace

std::unique_ptr<Normalizer> make_normalizer(const json::Place& spec) {
  const std::string& type = spec.at("type").as_string();
  if (const std::optional<unicode::Form> form = form_named(type)) {
    return function([f = *form](std::string_view s) { return unicode::normalize(s, f); }, true);
  }
  if (type == "Sequence") {
    return make_chain(spec);
  }
  if (type == "Lowercase") {
    return function([](std::string_view s) { return unicode::lowercase(s); });
  }
  if (type == "StripAccents") {
    return function([](std::string_view s) { return without(s, unicode::kMark, unicode::kNoMark); }, true);
  }
  if (type == "Strip") {
    return function(
        [l = spec.bool_or("strip_left", true), r = spec.bool_or("strip_right", true)](std::string_view s) { return strip(s, l, r); });
  }
  if (type == "Prepend") {
    return function(
        [text = spec.at("prepend").as_string()](std::string_view s) { return s.empty() ? std::string() : text + std::string(s); });
  }
  if (type == "Nmt") {
    return function(nmt);
  }
  if (type == "ByteLevel") {
    return function([](std::string_view s) { return byte_letters::spell(s); });
  }
  if (type == "Replace") {
    return make_replace(spec);
  }
  if (type == "BertNormalizer") {
    return make_bert(spec);
  }
  if (type == "Precompiled") {
    const json::Place blob = spec.at("precompiled_charsmap");
    auto map = std::make_shared<Charsmap>(decode_base64(blob.as_string(), blob.path()), blob.path());
    return function([map](std::string_view s) { return precompiled(*map, s); });
  }
  fail(
      Code::data,
      "{} = {} is not supported; there are BertNormalizer, ByteLevel, Lowercase, NFC, NFD, NFKC, NFKD, Nmt, Precompiled, Prepend, Replace, "
      "Sequence, Strip, StripAccents",
      spec.path("type"), kf::quoted(type));
}

}  // namespace kf
