#include "data/file/braces.h"

#include <charconv>
#include <optional>
#include <string_view>

#include "core/error.h"

namespace kf {
namespace {

constexpr std::size_t kMost = 1000000;

/// The brace that closes the one at `open`; npos when none does. `commas`: those of the list itself.
std::size_t closing(std::string_view text, std::size_t open, std::vector<std::size_t>& commas) {
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    if (text[i] == '{') {
      ++depth;
    } else if (text[i] == ',' && depth == 1) {
      commas.push_back(i);
    } else if (text[i] == '}' && --depth == 0) {
      return i;
    }
  }
  return std::string_view::npos;
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0 ? std::optional(value) : std::nullopt;
}

bool is_letter(std::string_view text) {
  return text.size() == 1 && ((text[0] >= 'a' && text[0] <= 'z') || (text[0] >= 'A' && text[0] <= 'Z'));
}

std::string padded(std::int64_t value, std::size_t width) {
  std::string digits = std::to_string(value);
  return digits.size() < width ? std::string(width - digits.size(), '0') + digits : digits;
}

/// "00..12" spelled out; nothing when it is no range.
std::optional<std::vector<std::string>> range(std::string_view inside) {
  const std::size_t dots = inside.find("..");
  if (dots == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view from = inside.substr(0, dots);
  const std::string_view to = inside.substr(dots + 2);
  const bool letters = is_letter(from) && is_letter(to);
  const std::optional<std::int64_t> first = letters ? from[0] : whole_number(from);
  const std::optional<std::int64_t> last = letters ? to[0] : whole_number(to);
  if (!first || !last) {
    return std::nullopt;
  }
  const std::int64_t count = (*first < *last ? *last - *first : *first - *last) + 1;
  KF_CHECK(count <= static_cast<std::int64_t>(kMost), Code::data, "the range {{}} names {} files", inside, count);
  const bool zeros = (from.size() > 1 && from[0] == '0') || (to.size() > 1 && to[0] == '0');
  const std::size_t width = zeros ? std::max(from.size(), to.size()) : 0;
  std::vector<std::string> out;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t value = *first < *last ? *first + i : *first - i;
    out.push_back(letters ? std::string(1, static_cast<char>(value)) : padded(value, width));
  }
  return out;
}

std::vector<std::string> pieces(std::string_view text, std::size_t open, std::size_t close, const std::vector<std::size_t>& commas) {
  std::vector<std::string> out;
  std::size_t start = open + 1;
  for (const std::size_t comma : commas) {
    out.emplace_back(text.substr(start, comma - start));
    start = comma + 1;
  }
  out.emplace_back(text.substr(start, close - start));
  return out;
}

}  // namespace

std::vector<std::string> expand_braces(const std::string& pattern) {
  for (std::size_t open = pattern.find('{'); open != std::string::npos; open = pattern.find('{', open + 1)) {
    std::vector<std::size_t> commas;
    const std::size_t close = closing(pattern, open, commas);
    if (close == std::string::npos) {
      continue;
    }
    std::optional<std::vector<std::string>> choices;
    if (!commas.empty()) {
      choices = pieces(pattern, open, close, commas);
    } else {
      choices = range(std::string_view(pattern).substr(open + 1, close - open - 1));
    }
    if (!choices) {
      continue;
    }
    std::vector<std::string> out;
    for (const std::string& choice : *choices) {
      for (std::string& one : expand_braces(pattern.substr(0, open) + choice + pattern.substr(close + 1))) {
        out.push_back(std::move(one));
        KF_CHECK(out.size() <= kMost, Code::data, "{} names more than {} files", pattern, kMost);
      }
    }
    return out;
  }
  return {pattern};
}

}  // namespace kf
