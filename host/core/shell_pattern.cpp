#include "core/shell_pattern.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace kf {
namespace {

/// The set at `pattern[0] == '['`: its length (0 when no bracket closes it: then an ordinary character) and whether it holds `c`.
std::pair<std::size_t, bool> match_set(std::string_view pattern, char c) {
  const std::size_t close = pattern.find(']', pattern.substr(1, 1) == "!" ? 3 : 2);
  if (close == std::string_view::npos) {
    return {0, false};
  }
  std::string_view set = pattern.substr(1, close - 1);
  const bool negated = set[0] == '!';
  set.remove_prefix(negated ? 1 : 0);
  bool found = false;
  for (std::size_t i = 0; i < set.size(); ++i) {
    if (i + 2 < set.size() && set[i + 1] == '-') {
      found = found || (set[i] <= c && c <= set[i + 2]);
      i += 2;
    } else {
      found = found || set[i] == c;
    }
  }
  return {close + 1, found != negated};
}

/// How much of `pattern` its first element takes when it matches `c`; 0 when it does not.
std::size_t match_one(std::string_view pattern, char c) {
  if (pattern.empty()) {
    return 0;
  }
  if (pattern[0] == '[') {
    const auto [length, found] = match_set(pattern, c);
    if (length > 0) {
      return found ? length : 0;
    }
  }
  return pattern[0] == '?' || pattern[0] == c ? 1 : 0;
}

}  // namespace

bool matches_part(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t mark = 0;  // where the text stood at the last star
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = t;
    } else if (const std::size_t taken = match_one(pattern.substr(std::min(p, pattern.size())), text[t]); taken > 0) {
      p += taken;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

}  // namespace kf
