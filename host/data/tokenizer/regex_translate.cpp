// From the dialects of tokenizer files to that of PCRE2.

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "core/error.h"
#include "data/tokenizer/regex.h"
#include "data/tokenizer/regex_sets.h"
#include "data/tokenizer/unicode.h"

namespace kf {
namespace {

using regex_set::CharSet;

constexpr const char* kAnyCharacter = "[\\x{0}-\\x{10ffff}]";

/// Letters that Oniguruma, where capitals count for nothing, takes for one character that is written otherwise.
struct FoldedLetters {
  std::string_view letters;
  std::string_view expression;
};
constexpr std::array<FoldedLetters, 9> kFolded{{{"ffi", "(?:ffi|\\x{fb03}|\\x{fb00}i|f\\x{fb01})"},
                                                {"ffl", "(?:ffl|\\x{fb04}|\\x{fb00}l|f\\x{fb02})"},
                                                {"ff", "(?:ff|\\x{fb00})"},
                                                {"fi", "(?:fi|\\x{fb01})"},
                                                {"fl", "(?:fl|\\x{fb02})"},
                                                {"st", "(?:st|\\x{fb05}|\\x{fb06})"},
                                                {"ss", "(?:ss|\\x{df}|\\x{1e9e})"},
                                                {"\xc3\x9f", "(?:\\x{df}|\\x{1e9e}|ss)"},
                                                {"\xef\xac\x81", "(?:\\x{fb01}|fi)"}}};

class Translator {
 public:
  Translator(std::string_view pattern, scan::Dialect dialect, const std::string& where)
      : in_(pattern), dialect_(dialect), onig_(dialect == scan::Dialect::onig), where_(where), groups_(1) {}

  std::string run() {
    while (at_ < in_.size()) {
      item();
    }
    out_.append(groups_.front().opened, ')');
    return std::move(out_);
  }

 private:
  struct Flags {
    bool any_case = false;
    bool blanks_mean_nothing = false;
  };
  struct Group {
    std::size_t begin = 0;   // in out_
    std::size_t opened = 0;  // groups of flags that end with this one
    Flags outer;
  };

  [[noreturn]] void refuse(const std::string& what) const {
    fail(Code::data, "{}: {} in the regular expression {} (at {}) is not supported", where_, what, kf::quoted(in_), at_);
  }
  bool next_is(std::string_view text) const { return in_.substr(at_, text.size()) == text; }
  char char_at(std::size_t i) const { return i < in_.size() ? in_[i] : '\0'; }
  void copy(std::size_t count) {
    out_ += in_.substr(at_, count);
    at_ += std::min(count, in_.size() - at_);
  }
  void put(std::size_t taken, std::string_view text) {
    out_ += text;
    at_ += taken;
  }

  void item() {
    const char c = in_[at_];
    if (onig_ && flags_.blanks_mean_nothing && skip_blank()) {
      return;
    }
    if (c == '*' || c == '+' || c == '?' || (c == '{' && interval() != 0)) {
      quantifier();
      return;
    }
    if (c != '(' && c != ')') {
      atom_ = out_.size();
    }
    if (c == '\\') {
      escape(false);
    } else if (c == '[') {
      out_ += read_class().expression();
    } else if (c == '(') {
      open();
    } else if (c == ')') {
      close();
    } else if (c == '{') {
      put(1, "\\{");
    } else if (!folded_letters()) {
      copy(unicode::decode(in_.data() + at_, in_.data() + in_.size()).size);
    }
    repeated_ = false;
  }

  /// What (?x) leaves out.
  bool skip_blank() {
    if (in_[at_] == '#') {
      at_ = std::min(in_.find('\n', at_), in_.size());
      return true;
    }
    const bool blank = std::string_view(" \t\n\v\f\r").find(in_[at_]) != std::string_view::npos;
    at_ += blank ? 1 : 0;
    return blank;
  }

  bool folded_letters() {
    if (!onig_ || !flags_.any_case) {
      return false;
    }
    for (const FoldedLetters& folded : kFolded) {
      const std::size_t size = folded.letters.size();
      const bool same = at_ + size <= in_.size() &&
                        std::equal(folded.letters.begin(), folded.letters.end(), in_.begin() + at_,
                                   [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? static_cast<char>(b - 'A' + 'a') : b); });
      // A repeat behind them is of the last letter alone.
      if (same && (folded.letters[0] < 0 || std::string_view("*+?{").find(char_at(at_ + size)) == std::string_view::npos ||
                   at_ + size == in_.size())) {
        put(size, folded.expression);
        return true;
      }
    }
    return false;
  }

  // Groups and flags

  void open() {
    if (next_is("(?#")) {
      const std::size_t end = in_.find(')', at_);
      at_ = end == std::string_view::npos ? in_.size() : end + 1;
      return;
    }
    const std::size_t after = onig_ && next_is("(?") ? in_.find_first_not_of("imxWDSPILCay-", at_ + 2) : std::string_view::npos;
    const char ending = char_at(after);
    const bool has_flags = after != std::string_view::npos && after > at_ + 2 && (ending == ')' || ending == ':');
    if (!has_flags) {
      if (onig_ && next_is("(?~")) {
        refuse("an absent operator");
      }
      groups_.push_back({out_.size(), 0, flags_});
      copy(head_of_group());
      return;
    }
    const std::string_view written = in_.substr(at_ + 2, after - at_ - 2);
    if (ending == ':') {
      groups_.push_back({out_.size(), 0, flags_});
    } else {  // to the end of the group around it, alternatives too
      ++groups_.back().opened;
    }
    at_ = after + 1;
    out_ += flags(written);
  }

  /// Up to what says which kind of group it is, with its name or condition.
  std::size_t head_of_group() const {
    if (!next_is("(?")) {
      return 1;
    }
    if (next_is("(?<=") || next_is("(?<!")) {
      return 4;
    }
    const char ending = next_is("(?<") || next_is("(?P<") ? '>' : next_is("(?(") ? ')' : '\0';
    const std::size_t end = ending == '\0' ? std::string_view::npos : in_.find(ending, at_);
    return end == std::string_view::npos ? 3 : end + 1 - at_;
  }

  /// Oniguruma's m is s elsewhere, and x is done here.
  std::string flags(std::string_view written) {
    std::string on;
    std::string off;
    bool wanted = true;
    for (const char c : written) {
      if (c == '-') {
        wanted = false;
      } else if (c == 'x') {
        flags_.blanks_mean_nothing = wanted;
      } else if (c == 'i' || c == 'm') {
        (wanted ? on : off) += c == 'm' ? 's' : 'i';
        flags_.any_case = c == 'i' ? wanted : flags_.any_case;
      } else {
        refuse(std::string("the flag ") + c);
      }
    }
    return "(?" + on + (off.empty() ? "" : "-" + off) + ":";
  }

  void close() {
    if (groups_.size() > 1) {
      const Group group = groups_.back();
      groups_.pop_back();
      out_.append(group.opened, ')');
      atom_ = group.begin;
      flags_ = group.outer;
    }
    copy(1);
  }

  // Repeats

  /// How long the {n}, {n,}, {,m} or {n,m} here is; 0 where it is text.
  std::size_t interval() const {
    const std::size_t close = in_.find('}', at_);
    const std::string_view inside = close == std::string_view::npos ? "" : in_.substr(at_ + 1, close - at_ - 1);
    const bool counts = inside.find_first_not_of("0123456789,") == std::string_view::npos &&
                        inside.find_first_of("0123456789") != std::string_view::npos && std::count(inside.begin(), inside.end(), ',') <= 1;
    return counts && (onig_ || inside[0] != ',') ? inside.size() + 2 : 0;
  }

  /// In Oniguruma a repeat may be repeated, and of {n,m} only {n,m}? means something else than that.
  void quantifier() {
    if (onig_ && repeated_) {
      out_.insert(atom_, "(?:");
      out_ += ")";
    }
    const std::size_t size = in_[at_] == '{' ? interval() : 1;
    const std::string_view text = in_.substr(at_, size);
    put(size, text.starts_with("{,") ? "{0" + std::string(text.substr(1)) : std::string(text));
    const bool lazy = next_is("?") && !(onig_ && size > 1 && text.find(',') == std::string_view::npos);
    if (lazy || (next_is("+") && (!onig_ || size == 1))) {
      copy(1);
    }
    repeated_ = true;
  }

  // Escapes

  void add(const CharSet& set, bool negated, bool in_class) {
    const CharSet given{set.members, set.negated != negated};
    if (!in_class) {
      out_ += given.expression();
    } else if (given.negated) {
      others_.push_back(given.expression());
    } else {
      out_ += given.members;
    }
  }

  void escape(bool in_class) {
    const char c = char_at(at_ + 1);
    if (c == 'p' || c == 'P') {
      property(in_class);
    } else if (c == 's' || c == 'S') {
      at_ += 2;
      add(regex_set::spaces(), c == 'S', in_class);
    } else if (c == 'd' || c == 'D') {
      at_ += 2;
      add(regex_set::digits(), c == 'D', in_class);
    } else if (c == 'w' || c == 'W') {
      at_ += 2;
      add(regex_set::word(dialect_, in_class), c == 'W', in_class);
    } else if (!in_class && (c == 'b' || c == 'B')) {
      boundary(c == 'b');
    } else if (c == 'x' || c == 'u' || c == 'U') {
      code_point();
    } else if (onig_) {
      onig_escape(c, in_class);
    } else {
      copy(2);
    }
  }

  void boundary(bool wanted) {
    const std::string w = regex_set::word(dialect_, false).expression();
    put(2, wanted ? "(?:(?<=" + w + ")(?!" + w + ")|(?<!" + w + ")(?=" + w + "))"
                  : "(?:(?<=" + w + ")(?=" + w + ")|(?<!" + w + ")(?!" + w + "))");
  }

  /// \xHH, \x{H..}, \uHHHH, and Rust's \u{H..} and \UHHHHHHHH.
  void code_point() {
    const auto digits_from = [&](std::size_t begin, std::size_t most) {
      const std::size_t end = std::min(in_.find_first_not_of("0123456789abcdefABCDEF", begin), in_.size());
      return in_.substr(begin, std::min(end - begin, most));
    };
    const char c = in_[at_ + 1];
    const bool braces = char_at(at_ + 2) == '{' && (c == 'x' || !onig_);
    std::size_t most = 8;
    if (!braces && c != 'U') {
      most = c == 'x' ? 2 : 4;
    }
    const std::string_view digits = digits_from(at_ + (braces ? 3 : 2), most);
    if (onig_ && c == 'U') {
      put(2, "U");
    } else if (digits.empty() || (braces && char_at(at_ + 3 + digits.size()) != '}')) {
      refuse(std::string("an unfinished \\") + c);
    } else {
      put(digits.size() + (braces ? 4 : 2), "\\x{" + std::string(digits) + "}");
    }
  }

  void onig_escape(char c, bool in_class) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (c == '\0') {
      copy(2);
    } else if (c == 'h' || c == 'H') {
      at_ += 2;
      add({"0-9a-fA-F"}, c == 'H', in_class);
    } else if (c == 'v') {
      put(2, "\\x{b}");
    } else if (c == 'C' && char_at(at_ + 2) == '-') {
      put(4, "\\c" + std::string(1, char_at(at_ + 3)));
    } else if (c == 'c') {
      copy(3);
    } else if ((c == 'M' && char_at(at_ + 2) == '-') || (!in_class && (c == 'y' || c == 'Y' || c == 'X'))) {
      refuse(std::string("\\") + c);
    } else if (!in_class && c == 'R') {
      put(2, "(?>\\r\\n|[\\n-\\r\\x{85}\\x{2028}\\x{2029}])");
    } else if (!in_class && (c == 'N' || c == 'O')) {
      put(2, c == 'N' ? "[^\\n]" : kAnyCharacter);
    } else if (!in_class && (c == 'k' || c == 'g') && (char_at(at_ + 2) == '<' || char_at(at_ + 2) == '\'')) {
      reference(c);
    } else if (letter && std::string_view(in_class ? "tnrbfae" : "tnrfaeAZzGK").find(c) == std::string_view::npos) {
      put(2, std::string(1, c));  // any other letter stands for itself
    } else {
      copy(2);
    }
  }

  /// \k<name>, \k<n>, \k<-n>: what a group matched; \g<...>: the group again.
  void reference(char kind) {
    const std::size_t end = in_.find(in_[at_ + 2] == '<' ? '>' : '\'', at_ + 3);
    const std::string name(in_.substr(at_ + 3, end == std::string_view::npos ? 0 : end - at_ - 3));
    if (name.empty() || name.find('+') != std::string::npos || name.find('-', 1) != std::string::npos) {
      refuse(std::string("such a \\") + kind);
    }
    const bool number = name.find_first_not_of("-0123456789") == std::string::npos;
    put(name.size() + 4, kind == 'g' ? "\\g<" + name + ">" : number ? "\\g{" + name + "}" : "\\k<" + name + ">");
  }

  void property(bool in_class) {
    const bool braces = char_at(at_ + 2) == '{';
    if (!braces && onig_) {  // it has no \pL
      put(2, std::string(1, in_[at_ + 1]));
      return;
    }
    const std::size_t close = braces ? in_.find('}', at_) : at_ + 2;
    if (close >= in_.size()) {
      refuse("an unfinished \\p{...}");
    }
    std::string_view name = braces ? in_.substr(at_ + 3, close - at_ - 3) : in_.substr(close, 1);
    const bool opposite = name.starts_with('^');
    name.remove_prefix(opposite ? 1 : 0);
    const std::optional<CharSet> set = regex_set::property(name);
    if (!set) {
      refuse("the property " + std::string(name));
    }
    const bool negated = (in_[at_ + 1] == 'P') != opposite;
    at_ = close + 1;
    add(*set, negated, in_class);
  }

  // Classes

  /// A class, taken apart: what PCRE2 has no members for, complements and classes in a class, are alternatives to the members.
  struct Class {
    bool negated = false;
    std::string members;
    std::vector<std::string> others;

    bool plain() const { return !negated && others.empty(); }
    std::string expression() const {
      if (others.empty()) {
        return (negated ? "[^" : "[") + members + "]";
      }
      const std::string any = join(others, "|") + (members.empty() ? "" : "|[" + members + "]");
      return negated ? "(?:(?!" + any + ")" + kAnyCharacter + ")" : "(?:" + any + ")";
    }
  };

  Class read_class() {
    const std::string outer = std::exchange(out_, {});
    std::vector<std::string> outer_others = std::exchange(others_, {});
    ++at_;
    const bool negated = next_is("^");
    at_ += negated ? 1 : 0;
    if (next_is("]")) {
      put(1, "\\]");
    }
    std::string left;  // of &&, as look-aheads
    for (;;) {
      members();
      if (next_is("]")) {
        break;
      }
      at_ += 2;
      left += "(?=" + taken().expression() + ")";
    }
    ++at_;
    Class last;
    if (left.empty()) {
      last = {negated, std::exchange(out_, {}), std::exchange(others_, {})};
    } else {
      last = {negated, "", {left + taken().expression()}};
    }
    out_ = outer;
    others_ = std::move(outer_others);
    return last;
  }
  Class taken() {
    if (out_.empty() && others_.empty()) {
      refuse("an intersection with nothing");
    }
    return {false, std::exchange(out_, {}), std::exchange(others_, {})};
  }

  /// What a class holds, up to its end or to &&.
  void members() {
    while (!next_is("]") && !next_is("&&")) {
      if (at_ >= in_.size()) {
        refuse("an unfinished class");
      }
      if (next_is("[:") && in_.find(":]", at_) != std::string_view::npos) {
        posix_class();
      } else if (next_is("[")) {
        inner_class();
      } else if (!onig_ && (next_is("--") || next_is("~~"))) {
        refuse("a difference of classes");
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
    if (inner.plain()) {
      out_ += inner.members;
    } else {
      others_.push_back(inner.expression());
    }
  }

  void posix_class() {
    const std::size_t close = in_.find(":]", at_);
    const std::optional<CharSet> set = regex_set::posix(in_.substr(at_ + 2, close - at_ - 2), dialect_);
    if (!set) {
      refuse("such a POSIX class");
    }
    at_ = close + 2;
    add(*set, false, true);
  }

  std::string_view in_;
  scan::Dialect dialect_;
  bool onig_;
  const std::string& where_;
  std::string out_;
  std::size_t at_ = 0;
  std::size_t atom_ = 0;   // where in out_ the last thing began that a repeat would repeat
  bool repeated_ = false;  // it has a repeat
  Flags flags_;
  std::vector<Group> groups_;        // the first is the whole
  std::vector<std::string> others_;  // of the class that is being read
};

}  // namespace

std::string translate_regex(std::string_view pattern, scan::Dialect dialect, const std::string& where) {
  return Translator(pattern, dialect, where).run();
}

}  // namespace kf
