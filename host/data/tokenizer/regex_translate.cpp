// From the dialects of tokenizer files to that of PCRE2.

#include <algorithm>

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
/// Rust counts the joiners as parts of words, Oniguruma six fractions and superscripts of Latin-1.
std::string word_members(bool onig) {
  static const std::string common = category("L") + category("M") + category("Nl") + category("Nd") + category("Pc") +
                                    "\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}";
  return common + (onig ? "\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}" : "\\x{200c}\\x{200d}");
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
      out_ += in_class ? members : (negated ? "[^" : "[") + members + "]";
      at_ += 2;
    };
    if (c == 'p' || c == 'P') {
      property(in_class);
    } else if (c == 's') {
      put(space_members(), false);
    } else if (c == 'd') {
      put(category("Nd"), false);
    } else if (c == 'w') {
      put(word_members(onig_), false);
    } else if (!in_class && (c == 'S' || c == 'D' || c == 'W')) {
      put(c == 'S' ? space_members() : c == 'D' ? category("Nd") : word_members(onig_), true);
    } else if (!in_class && (c == 'b' || c == 'B')) {
      boundary(c == 'b');
    } else if (onig_ && c == 'h') {
      put("0-9a-fA-F", false);
    } else if (onig_ && !in_class && (c == 'H' || c == 'R' || c == 'X' || c == 'K' || c == 'G' || c == 'g' || c == 'k')) {
      refuse("this escape");
    } else {
      copy(2);
    }
  }
  void boundary(bool wanted) {
    const std::string w = "[" + word_members(onig_) + "]";
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
    if (is_category(name) && !(in_class && negated)) {
      out_ += in_class ? category(name) : (negated ? "[^" : "[") + category(name) + "]";
    } else {
      out_ += (negated ? "\\P{" : "\\p{") + name + "}";
    }
  }

  void character_class() {
    copy(1);
    if (next_is("^")) {
      copy(1);
    }
    if (next_is("]")) {
      copy(1);
    }
    members();
    copy(1);
  }

  /// What a class holds, up to its end.
  void members() {
    while (!next_is("]")) {
      if (at_ >= in_.size()) {
        refuse("an unfinished class");
      }
      if (next_is("[:")) {
        const std::size_t close = in_.find(":]", at_);
        copy(close == std::string_view::npos ? 1 : close + 2 - at_);
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

  /// A class inside a class adds its members, which PCRE2 has no word for.
  void inner_class() {
    if (next_is("[^") || next_is("[]") || next_is("[-") || out_.ends_with('-')) {
      refuse("such a class inside a class");
    }
    ++at_;
    members();
    if (next_is("]-") && !next_is("]-]")) {
      refuse("such a class inside a class");
    }
    ++at_;
  }

  std::string_view in_;
  bool onig_;
  const std::string& where_;
  std::string out_;
  std::size_t at_ = 0;
  std::size_t atom_ = 0;  // where in out_ the last thing began that a repeat would repeat
  std::vector<std::size_t> groups_;
};

}  // namespace

std::string translate_regex(std::string_view pattern, scan::Dialect dialect, const std::string& where) {
  return Translator(pattern, dialect, where).run();
}

}  // namespace kf
