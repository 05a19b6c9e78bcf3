#include "data/tokenizer/pre_tokenizers.h"

#include <algorithm>
#include <functional>

#include "core/error.h"
#include "data/tokenizer/byte_letters.h"
#include "data/tokenizer/regex.h"
#include "data/tokenizer/unicode.h"
#include "data/tokenizer/unicode_older.h"
#include "data/tokenizer/unicode_scripts.h"

namespace kf {
namespace {

struct Span {
  std::size_t begin;
  std::size_t end;
  bool match;
};
using Spans = std::vector<Span>;
/// Cuts a text into spans that cover it.
using Finder = std::function<void(std::string_view, Spans&)>;

enum class Behavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

Behavior behavior_named(const json::Place& place) {
  const std::string& name = place.as_string();
  if (name == "Removed") {
    return Behavior::removed;
  }
  if (name == "Isolated") {
    return Behavior::isolated;
  }
  if (name == "MergedWithPrevious") {
    return Behavior::merged_with_previous;
  }
  if (name == "MergedWithNext") {
    return Behavior::merged_with_next;
  }
  if (name != "Contiguous") {
    place.wrong("Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
  }
  return Behavior::contiguous;
}

/// Joins neighbouring spans; `join(earlier match, match)` says whether a span goes to the one before it.
template <class Join>
void fold(Spans& spans, const Join& join) {
  Spans out;
  bool previous = false;
  for (const Span& span : spans) {
    if (!out.empty() && join(previous, span.match)) {
      out.back().begin = std::min(out.back().begin, span.begin);
      out.back().end = std::max(out.back().end, span.end);
    } else {
      out.push_back(span);
    }
    previous = span.match;
  }
  spans = std::move(out);
}

void apply(Behavior behavior, Spans& spans) {
  switch (behavior) {
    case Behavior::removed:
      spans.erase(std::remove_if(spans.begin(), spans.end(), [](const Span& span) { return span.match; }), spans.end());
      return;
    case Behavior::isolated: return;
    case Behavior::contiguous: fold(spans, [](bool previous, bool match) { return previous == match; }); return;
    case Behavior::merged_with_previous: fold(spans, [](bool previous, bool match) { return match && !previous; }); return;
    case Behavior::merged_with_next:
      std::reverse(spans.begin(), spans.end());
      fold(spans, [](bool previous, bool match) { return match && !previous; });
      std::reverse(spans.begin(), spans.end());
      return;
  }
}

class Cutter final : public PreTokenizer {
 public:
  Cutter(Finder find, Behavior behavior, bool invert = false) : find_(std::move(find)), behavior_(behavior), invert_(invert) {}

  void split(TextPieces& pieces) const override {
    std::vector<TextPiece> out;
    Spans spans;
    for (const TextPiece& piece : pieces.list) {
      spans.clear();
      find_(piece.text, spans);
      if (invert_) {
        std::for_each(spans.begin(), spans.end(), [](Span& span) { span.match = !span.match; });
      }
      apply(behavior_, spans);
      for (const Span& span : spans) {
        if (span.end > span.begin) {
          out.push_back({piece.text.substr(span.begin, span.end - span.begin), piece.at_start && span.begin == 0});
        }
      }
    }
    pieces.list = std::move(out);
  }

 private:
  Finder find_;
  Behavior behavior_;
  bool invert_;
};

/// Changes each piece as a whole.
class Changer final : public PreTokenizer {
 public:
  explicit Changer(std::function<std::string(const TextPiece&)> change) : change_(std::move(change)) {}
  void split(TextPieces& pieces) const override {
    for (TextPiece& piece : pieces.list) {
      piece.text = pieces.keep(change_(piece));
    }
  }

 private:
  std::function<std::string(const TextPiece&)> change_;
};

/// Each character for which `matches` holds is a match of its own, what lies between them is not.
Finder characters(std::function<bool(std::uint32_t)> matches) {
  return [matches = std::move(matches)](std::string_view text, Spans& spans) {
    const char* end = text.data() + text.size();
    std::size_t from = 0;
    for (std::size_t at = 0; at < text.size();) {
      const unicode::Decoded c = unicode::decode(text.data() + at, end);
      if (matches(c.cp)) {
        if (from < at) {
          spans.push_back({from, at, false});
        }
        spans.push_back({at, at + c.size, true});
        from = at + c.size;
      }
      at += c.size;
    }
    if (from < text.size()) {
      spans.push_back({from, text.size(), false});
    }
  };
}

Finder expression(std::shared_ptr<const Regex> regex) {
  return [regex = std::move(regex)](std::string_view text, Spans& spans) {
    std::size_t from = 0;
    regex->each_match(text, [&](std::size_t begin, std::size_t end) {
      if (from < begin) {
        spans.push_back({from, begin, false});
      }
      spans.push_back({begin, end, true});
      from = end;
      return true;
    });
    if (from < text.size()) {
      spans.push_back({from, text.size(), false});
    }
  };
}

Finder literal(std::string pattern) {
  return [pattern = std::move(pattern)](std::string_view text, Spans& spans) {
    std::size_t from = 0;
    for (std::size_t at = text.find(pattern); !pattern.empty() && at != std::string_view::npos; at = text.find(pattern, from)) {
      if (from < at) {
        spans.push_back({from, at, false});
      }
      from = at + pattern.size();
      spans.push_back({at, from, true});
    }
    if (from < text.size()) {
      spans.push_back({from, text.size(), false});
    }
  };
}

Finder scanner(scan::Pattern pattern) {
  return [pattern](std::string_view text, Spans& spans) {
    const char* end = text.data() + text.size();
    const scan::Reader reader(end);
    scan::with_scanner(pattern, [&](auto kind) {
      for (const char* p = text.data(); p < end;) {
        const char* stop = decltype(kind)::next(p, reader);
        spans.push_back({static_cast<std::size_t>(p - text.data()), static_cast<std::size_t>(stop - text.data()), true});
        p = stop;
      }
    });
  };
}

/// \w+|[^\w\s]+
void words_and_symbols(std::string_view text, Spans& spans) {
  const auto kind = [](std::uint32_t cp) { return unicode::is_word(cp) ? 1 : unicode::is(cp, unicode::kSpace) ? 2 : 3; };
  const char* end = text.data() + text.size();
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t from = at;
    const int wanted = kind(unicode::decode(text.data() + at, end).cp);
    while (at < text.size()) {
      const unicode::Decoded c = unicode::decode(text.data() + at, end);
      if (kind(c.cp) != wanted) {
        break;
      }
      at += c.size;
    }
    spans.push_back({from, at, wanted != 2});
  }
}

void by_script(std::string_view text, Spans& spans) {
  const char* end = text.data() + text.size();
  std::optional<int> last;  // of the last character with a script
  std::vector<std::size_t> cuts;
  for (std::size_t at = 0; at < text.size();) {
    const unicode::Decoded c = unicode::decode(text.data() + at, end);
    const int script = unicode::split_script(c.cp);
    if (script != unicode::kAnyScript) {
      if (last != script) {
        cuts.push_back(at);
      }
      last = script;
    }
    at += c.size;
  }
  cuts.push_back(text.size());
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {  // what comes before the first cut is dropped, as in the original
    spans.push_back({cuts[i], cuts[i + 1], false});
  }
}

Finder chunks(std::int64_t length) {
  return [length](std::string_view text, Spans& spans) {
    const char* end = text.data() + text.size();
    std::size_t from = 0;
    std::int64_t count = 0;
    for (std::size_t at = 0; at < text.size();) {
      at += unicode::decode(text.data() + at, end).size;
      if (++count == length || at == text.size()) {
        spans.push_back({from, at, false});
        from = at;
        count = 0;
      }
    }
  };
}

bool is_white(std::uint32_t cp) { return unicode::is(cp, unicode::kSpace); }
/// Rust's: of Unicode 17, which added two rows of digits.
bool is_number(std::uint32_t cp) {
  return unicode::is(cp, unicode::kNumber) || (cp >= 0x11de0 && cp <= 0x11de9) || (cp >= 0x16ff4 && cp <= 0x16ff6);
}
bool is_punctuation(std::uint32_t cp) {
  const bool ascii = (cp >= 33 && cp <= 47) || (cp >= 58 && cp <= 64) || (cp >= 91 && cp <= 96) || (cp >= 123 && cp <= 126);
  return ascii || cp == 0x166d || cp == 0x111c9 ||
         (unicode::is(cp, unicode::kPunctuation) && !unicode::within(unicode::kNoPunctuation, cp));
}

class Builder {
 public:
  explicit Builder(bool model_takes_bytes) : takes_bytes_(model_takes_bytes) {}

  void add(const json::Place& spec, bool last) {
    const std::string& type = spec.at("type").as_string();
    if (type == "Sequence") {
      const json::Place list = spec.at("pretokenizers");
      for (std::size_t i = 0; i < list.size(); ++i) {
        add(list.at(i), last && i + 1 == list.size());
      }
    } else if (type == "ByteLevel") {
      byte_level(spec, last);
    } else if (type == "Split") {
      split(spec);
    } else if (type == "Metaspace") {
      metaspace(spec);
    } else {
      simple(spec, type);
    }
  }
  PreTokenizing take() {
    if (out.parts.size() == 1) {
      out.only_pattern = pattern_;
    }
    return std::move(out);
  }

 private:
  void cut(Finder find, Behavior behavior, bool invert = false) {
    out.parts.push_back(std::make_unique<Cutter>(std::move(find), behavior, invert));
  }
  void change(std::function<std::string(const TextPiece&)> body) { out.parts.push_back(std::make_unique<Changer>(std::move(body))); }

  void byte_level(const json::Place& spec, bool last) {
    spec.warn_unknown({"type", "add_prefix_space", "trim_offsets", "use_regex"});
    if (spec.bool_or("add_prefix_space", true)) {
      change([](const TextPiece& piece) {
        return piece.text.empty() || piece.text.starts_with(' ') ? std::string(piece.text) : " " + std::string(piece.text);
      });
    }
    if (spec.bool_or("use_regex", true)) {
      pattern_ = scan::Pattern::gpt2;
      cut(scanner(*pattern_), Behavior::isolated);
    }
    out.spells_bytes = last;
    if (!last || !takes_bytes_) {
      change([](const TextPiece& piece) { return byte_letters::spell(piece.text); });
    }
  }

  void split(const json::Place& spec) {
    spec.warn_unknown({"type", "pattern", "behavior", "invert"});
    const Behavior behavior = behavior_named(spec.at("behavior"));
    const bool invert = spec.bool_or("invert", false);
    const json::Place pattern = spec.at("pattern");
    if (pattern.has("String")) {
      cut(literal(pattern.at("String").as_string()), behavior, invert);
      return;
    }
    const json::Place regex = pattern.at("Regex");
    const std::optional<scan::Pattern> known = scan::known_pattern(regex.as_string(), scan::Dialect::onig);
    if (known) {
      // These patterns match every character, so the pieces are the same however the rest is treated.
      const bool all_kept = (behavior == Behavior::isolated) || (behavior == Behavior::removed && invert);
      pattern_ = all_kept ? known : pattern_;
      cut(scanner(*known), behavior, invert);
    } else {
      cut(expression(std::make_shared<Regex>(regex.as_string(), scan::Dialect::onig, regex.path())), behavior, invert);
    }
  }

  void metaspace(const json::Place& spec) {
    spec.warn_unknown({"type", "replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep"});
    const std::string replacement = spec.string_or("replacement", "\xe2\x96\x81");
    const std::string scheme = spec.string_or("prepend_scheme", spec.bool_or("add_prefix_space", true) ? "always" : "never");
    KF_CHECK(scheme == "always" || scheme == "first" || scheme == "never", Code::data, "{} must be always, first or never, and is {}",
             spec.path("prepend_scheme"), kf::quoted(scheme));
    change([replacement, scheme](const TextPiece& piece) {
      std::string text;
      for (const char c : piece.text) {
        c == ' ' ? text += replacement : text += c;
      }
      const bool wanted = scheme == "always" || (scheme == "first" && piece.at_start);
      return wanted && !text.empty() && !text.starts_with(replacement) ? replacement + text : text;
    });
    if (spec.bool_or("split", true)) {
      cut(literal(replacement), Behavior::merged_with_next);
    }
  }

  void simple(const json::Place& spec, const std::string& type) {
    if (type == "Whitespace") {
      cut(words_and_symbols, Behavior::removed, true);
    } else if (type == "WhitespaceSplit") {
      cut(characters(is_white), Behavior::removed);
    } else if (type == "BertPreTokenizer") {
      cut(characters(is_white), Behavior::removed);
      cut(characters(is_punctuation), Behavior::isolated);
    } else if (type == "Punctuation") {
      cut(characters(is_punctuation), spec.has("behavior") ? behavior_named(spec.at("behavior")) : Behavior::isolated);
    } else if (type == "Digits") {
      cut(characters(is_number), spec.bool_or("individual_digits", false) ? Behavior::isolated : Behavior::contiguous);
    } else if (type == "CharDelimiterSplit") {
      cut(literal(spec.at("delimiter").as_string()), Behavior::removed);
    } else if (type == "FixedLength") {
      cut(chunks(spec.has("length") ? spec.at("length").as_integer(1, 1 << 30) : 5), Behavior::isolated);
    } else if (type == "UnicodeScripts") {
      cut(by_script, Behavior::isolated);
    } else {
      fail(Code::data,
           "{} = {} is not supported; there are BertPreTokenizer, ByteLevel, CharDelimiterSplit, Digits, FixedLength, Metaspace, "
           "Punctuation, "
           "Sequence, Split, UnicodeScripts, Whitespace, WhitespaceSplit",
           spec.path("type"), kf::quoted(type));
    }
  }

  PreTokenizing out;
  std::optional<scan::Pattern> pattern_;
  bool takes_bytes_;
};

}  // namespace

PreTokenizing make_pre_tokenizers(const json::Place& spec, bool model_takes_bytes) {
  Builder builder(model_takes_bytes);
  builder.add(spec, true);
  return builder.take();
}

}  // namespace kf
