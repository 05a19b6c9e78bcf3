#include "train/eval/rolling.h"

#include <algorithm>
#include <iterator>

namespace kf {
namespace {

/// What Python's str.isspace and \s hold for white space, as UTF-8.
constexpr std::string_view kSpaces[] = {" ",      "\t",     "\n",     "\v",     "\f",     "\r",     "\x1c",   "\x1d",   "\x1e",   "\x1f",
                                        "\u0085", "\u00a0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006",
                                        "\u2007", "\u2008", "\u2009", "\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"};

/// Bytes of the space that `text` begins with; 0 for none.
std::size_t space_at(std::string_view text) {
  const auto* const found =
      std::find_if(std::begin(kSpaces), std::end(kSpaces), [&](std::string_view one) { return text.starts_with(one); });
  return found == std::end(kSpaces) ? 0 : found->size();
}

using Ids = std::vector<std::int64_t>;

}  // namespace

std::vector<ChoiceIds> rolling_windows(const std::vector<std::int64_t>& ids, std::int64_t prefix, std::int64_t max_positions) {
  std::vector<ChoiceIds> out;
  const auto size = static_cast<std::int64_t>(ids.size());
  for (std::int64_t done = 0; done < size;) {
    const std::int64_t scored = std::min(max_positions, size - done);
    const std::int64_t end = done + scored;
    ChoiceIds window;
    window.continuation = scored;
    if (done == 0) {
      window.ids.push_back(prefix);
      window.ids.insert(window.ids.end(), ids.begin(), ids.begin() + end);
    } else {
      window.ids.assign(ids.begin() + (end - max_positions - 1), ids.begin() + end);
    }
    out.push_back(std::move(window));
    done = end;
  }
  return out;
}

std::int64_t count_words(std::string_view text) {
  std::int64_t words = 1;
  while (!text.empty()) {
    std::size_t space = space_at(text);
    words += space > 0 ? 1 : 0;
    text.remove_prefix(space > 0 ? space : 1);
    while (space > 0) {
      space = space_at(text);
      text.remove_prefix(space);
    }
  }
  return words;
}

std::size_t without_spaces(std::string_view text) {
  const auto ends = [&] {
    return std::find_if(std::begin(kSpaces), std::end(kSpaces), [&](std::string_view space) { return text.ends_with(space); });
  };
  for (const auto* space = ends(); space != std::end(kSpaces); space = ends()) {
    text.remove_suffix(space->size());
  }
  return text.size();
}

}  // namespace kf
