// From the dialects of tokenizer files to that of PCRE2.

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "core/error.h"
#include "data/tokenizer/regex.h"
#include "data/tokenizer/unicode_newer.h"

namespace kf {
namespace {

constexpr std::string_view kCategoryNames = "CnLuLlLtLmLoMnMcMeNdNlNoPcPdPsPePiPfPoSmScSkSoZsZlZpCcCfCsCo";

std::string hex(std::uint32_t cp) {
  std::string digits;
  for (int shift = 20; shift >= 0; shift -= 4) {
    digits += "0123456789abcdef"[cp >> shift & 15];
  }
  return "\\x{" + digits + "}";
}

/// The code points newer than PCRE2 whose category begins with `name`, as members of a class.
std::string newer(std::string_view name) {
  std::string out;
  for (const unicode::NewerRange& range : unicode::kNewer) {
    if (kCategoryNames.substr(2 * static_cast<std::size_t>(range.category), 2).starts_with(name)) {
      out += range.first == range.last ? hex(range.first) : hex(range.first) + "-" + hex(range.last);
    }
  }
  return out;
}

bool is_category(std::string_view name) {
  if (name.size() == 1) {
    return std::string_view("LMNPSZC").find(name) != std::string_view::npos;
  }
  for (std::size_t i = 0; i < kCategoryNames.size(); i += 2) {
    if (kCategoryNames.substr(i, 2) == name) {
      return true;
    }
  }
  return false;
}

std::string category(std::string_view name) { return "\\p{" + std::string(name) + "}" + newer(name); }

const std::string& space_members() {
  static const std::string out = "\\p{Z}\\x{9}-\\x{d}\\x{85}";
  return out;
}
/// Scripts proper: PCRE2 takes a bare name for the script with its extensions.
bool is_script(std::string_view name) {
  constexpr std::array<std::string_view, 28> known{"Arabic",   "Armenian",  "Bengali",   "Bopomofo", "Common",   "Cyrillic", "Devanagari",
                                                   "Ethiopic", "Georgian",  "Greek",     "Gujarati", "Gurmukhi", "Han",      "Hangul",
                                                   "Hebrew",   "Hiragana",  "Inherited", "Kannada",  "Katakana", "Khmer",    "Lao",
                                                   "Latin",    "Malayalam", "Mongolian", "Myanmar",  "Tamil",    "Telugu",   "Thai"};
  return std::find(known.begin(), known.end(), name) != known.end();
}
std::string script(std::string_view name) {
  // Ideographs of Unicode 15 and 15.1.
  return "\\p{sc:" + std::string(name) + "}" + (name == "Han" ? "\\x{2b739}\\x{2ebf0}-\\x{2ee5d}\\x{31350}-\\x{323af}" : "");
}
/// Rust counts the joiners as parts of words, Oniguruma six fractions and superscripts of Latin-1, but
/// not in a class.
std::string word_members(bool onig, bool in_class) {
  static const std::string common = category("L") + category("M") + category("Nl") + category("Nd") + category("Pc") +
                                    "\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}";
  return common + (!onig ? "\\x{200c}\\x{200d}" : in_class ? "" : "\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}");
}

class Translator {
 public:
  Translator(std::string_view pattern, scan::Dialect dialect, const std::string& where)
      : in_(pattern), onig_(dialect == scan::Dialect::onig), where_(where) {}

  std::string run() {
    while (at_ < in_.size()) {
      item();
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(const char* what) const {
    fail(Code::data, "{}: {} in the regular expression {} (at {}) is not supported", where_, what, kf::quoted(in_), at_);
  }
  bool next_is(std::string_view text) const { return in_.substr(at_, text.size()) == text; }
  void copy(std::size_t count) {
    out_ += in_.substr(at_, count);
    at_ += std::min(count, in_.size() - at_);
  }

  void item() {
    const char c = in_[at_];
    if (c == '\\') {
      atom_ = out_.size();
      escape(false);
    } else if (c == '[') {
      atom_ = out_.size();
      character_class();
    } else if (c == '(') {
      open();
    } else if (c == ')') {
      close();
    } else if (c == '{') {
      repeat();
    } else if (c == '*' || c == '+' || c == '?' || c == '|' || c == '^' || c == '$') {
      copy(1);
    } else {
      atom_ = out_.size();
      const unicode::Decoded d = unicode::decode(in_.data() + at_, in_.data() + in_.size());
      copy(d.size);
    }
  }

  void open() {
    groups_.push_back(out_.size());
    if (onig_ && next_is("(?") && in_.substr(at_).find_first_of(":)") != std::string_view::npos) {
      const std::string_view flags = in_.substr(at_ + 2, in_.substr(at_ + 2).find_first_of(":)"));
      if (!flags.empty() && flags.find_first_not_of("imx-") == std::string_view::npos && flags.find('m') != std::string_view::npos) {
        refuse("the flag m, which in Oniguruma lets . match line breaks,");
      }
    }
    copy(1);
  }
  void close() {
    atom_ = groups_.empty() ? out_.size() : groups_.back();
    if (!groups_.empty()) {
      groups_.pop_back();
    }
    copy(1);
  }

  /// {n,m}, and in Oniguruma {n,m}+, which repeats the repeat.
  void repeat() {
    const std::size_t close = in_.find('}', at_);
    const bool counts = close != std::string_view::npos && close > at_ + 1 &&
                        in_.substr(at_ + 1, close - at_ - 1).find_first_not_of("0123456789,") == std::string_view::npos;
    if (!counts) {
      atom_ = out_.size();
      out_ += "\\{";
      ++at_;
      return;
    }
    if (onig_ && in_[at_ + 1] == ',') {  // {,n} is {0,n} there, and text in PCRE2
      refuse("a repeat without a lower bound");
    }
    copy(close - at_ + 1);
    if (onig_ && next_is("+")) {
      out_.insert(atom_, "(?:");
      out_ += ")+";
      ++at_;
    }
  }

  void escape(bool in_class) {
    const char c = at_ + 1 < in_.size() ? in_[at_ + 1] : '\0';
    const auto put = [&](const std::string& members, bool negated) {
      const std::string alone = (negated ? "[^" : "[") + members + "]";
      if (in_class && negated) {
        others_.push_back(alone);
      } else {
        out_ += in_class ? members : alone;
      }
      at_ += 2;
    };
    if (c == 'p' || c == 'P') {
      property(in_class);
    } else if (c == 's') {
      put(space_members(), false);
    } else if (c == 'd') {
      put(category("Nd"), false);
    } else if (c == 'w') {
      put(word_members(onig_, in_class), false);
    } else if (c == 'S' || c == 'D' || c == 'W') {
      put(c == 'S' ? space_members() : c == 'D' ? category("Nd") : word_members(onig_, in_class), true);
    } else if (!in_class && (c == 'b' || c == 'B')) {
      boundary(c == 'b');
    } else if (onig_ && (c == 'h' || c == 'H')) {
      put("0-9a-fA-F", c == 'H');
    } else if (onig_ && !in_class && (c == 'R' || c == 'X' || c == 'K' || c == 'G' || c == 'g' || c == 'k')) {
      refuse("this escape");
    } else {
      copy(2);
    }
  }
  void boundary(bool wanted) {
    const std::string w = "[" + word_members(onig_, false) + "]";
    out_ += wanted ? "(?:(?<=" + w + ")(?!" + w + ")|(?<!" + w + ")(?=" + w + "))"
                   : "(?:(?<=" + w + ")(?=" + w + ")|(?<!" + w + ")(?!" + w + "))";
    at_ += 2;
  }

  void property(bool in_class) {
    const std::size_t start = at_;
    std::string name;
    if (at_ + 2 < in_.size() && in_[at_ + 2] == '{') {
      const std::size_t close = in_.find('}', at_);
      if (close == std::string_view::npos) {
        refuse("an unfinished \\p{...}");
      }
      name = in_.substr(at_ + 3, close - at_ - 3);
      at_ = close + 1;
    } else {
      name = in_.substr(std::min(at_ + 2, in_.size()), 1);
      at_ = std::min(at_ + 3, in_.size());
    }
    bool negated = in_[start + 1] == 'P';
    if (name.starts_with('^')) {
      negated = !negated;
      name.erase(0, 1);
    }
    const std::string members = is_category(name) ? category(name) : is_script(name) ? script(name) : "";
    if (!members.empty()) {
      const std::string alone = (negated ? "[^" : "[") + members + "]";
      if (in_class && negated) {
        others_.push_back(alone);
      } else {
        out_ += in_class ? members : alone;
      }
    } else {
      out_ += (negated ? "\\P{" : "\\p{") + name + "}";
    }
  }

  /// A class, taken apart: what PCRE2 has no members for, complements and classes in a class, are alternatives to the members.
  struct Class {
    bool negated = false;
    std::string members;
    std::vector<std::string> others;

    std::string expression() const {
      if (others.empty()) {
        return (negated ? "[^" : "[") + members + "]";
      }
      const std::string any = join(others, "|") + (members.empty() ? "" : "|[" + members + "]");
      return negated ? "(?:(?!" + any + ")[\\x{0}-\\x{10ffff}])" : "(?:" + any + ")";
    }
  };

  void character_class() { out_ += read_class().expression(); }

  Class read_class() {
    const std::string outer = std::exchange(out_, {});
    std::vector<std::string> outer_others = std::exchange(others_, {});
    ++at_;
    Class out;
    out.negated = next_is("^");
    at_ += out.negated ? 1 : 0;
    if (next_is("]")) {
      out_ += "\\]";
      ++at_;
    }
    members();
    ++at_;
    out.members = std::exchange(out_, outer);
    out.others = std::exchange(others_, std::move(outer_others));
    return out;
  }

  /// What a class holds, up to its end.
  void members() {
    while (!next_is("]")) {
      if (at_ >= in_.size()) {
        refuse("an unfinished class");
      }
      if (next_is("[:") && in_.find(":]", at_) != std::string_view::npos) {
        posix_class();
      } else if (next_is("[")) {
        inner_class();
      } else if (next_is("&&")) {
        refuse("an intersection of classes");
      } else if (next_is("\\")) {
        escape(true);
      } else {
        copy(1);
      }
    }
  }

  /// Adds its members to those of the class around it.
  void inner_class() {
    const auto open_range = [](const std::string& text) { return text.ends_with('-') && !text.ends_with("\\-"); };
    if (open_range(out_)) {
      refuse("such a class inside a class");
    }
    const Class inner = read_class();
    if (inner.members.starts_with('-') || open_range(inner.members) || (next_is("-") && !next_is("-]"))) {
      refuse("such a class inside a class");
    }
    if (inner.negated || !inner.others.empty()) {
      others_.push_back(inner.expression());
    } else {
      out_ += inner.members;
    }
  }

  /// Of Unicode in Oniguruma, of ASCII in Rust.
  void posix_class() {
    const std::size_t close = in_.find(":]", at_);
    const std::string_view name = in_.substr(at_ + 2, close - at_ - 2);
    if (name == "xdigit") {
      out_ += "0-9a-fA-F";
    } else if (name == "digit") {
      out_ += onig_ ? category("Nd") : "0-9";
    } else if (name == "space") {
      out_ += onig_ ? space_members() : "\\x{9}-\\x{d}\\x{20}";
    } else if (name == "punct") {
      out_ += onig_ ? category("P") + category("S") : "!-\\/:-@\\[-`{-~";
    } else if (!onig_ && (name == "alpha" || name == "alnum")) {
      out_ += name == "alpha" ? "a-zA-Z" : "0-9a-zA-Z";
    } else if (!onig_ && (name == "lower" || name == "upper")) {
      out_ += name == "lower" ? "a-z" : "A-Z";
    } else {
      refuse("such a POSIX class");
    }
    at_ = close + 2;
  }

  std::string_view in_;
  bool onig_;
  const std::string& where_;
  std::string out_;
  std::size_t at_ = 0;
  std::size_t atom_ = 0;  // where in out_ the last thing began that a repeat would repeat
  std::vector<std::size_t> groups_;
  std::vector<std::string> others_;  // of the class that is being read
};

}  // namespace

std::string translate_regex(std::string_view pattern, scan::Dialect dialect, const std::string& where) {
  return Translator(pattern, dialect, where).run();
}

}  // namespace kf
