#pragma once
// Regular expressions over UTF-8 as tokenizers write them, run by PCRE2 (just-in-time compiled).

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "data/tokenizer/scanners.h"

namespace kf {

/// Differences between the dialects and PCRE2 are translated: \s, \w, \d, \b and \p{..} follow Unicode 16 as in Rust and Oniguruma; in
/// Oniguruma ^ and $ are of lines, \h is a hex digit and X{n,m}+ is no possessive repeat.
class Regex {
 public:
  /// Throws Code::data for what does not compile or cannot be translated; `where` names the place in a file.
  Regex(std::string_view pattern, scan::Dialect dialect, const std::string& where);
  ~Regex();
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;

  /// Calls `found(begin, end)` for every match, from left to right, until it returns false. Bytes that are no UTF-8 never match.
  void each_match(std::string_view text, const std::function<bool(std::size_t, std::size_t)>& found) const;
  const std::string& pattern() const { return pattern_; }

 private:
  struct Code_;
  std::string pattern_;
  std::string where_;
  std::unique_ptr<Code_> code_;
};

/// The pattern as PCRE2 needs it.
std::string translate_regex(std::string_view pattern, scan::Dialect dialect, const std::string& where);

}  // namespace kf
