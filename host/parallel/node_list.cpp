#include "parallel/node_list.h"

#include <charconv>
#include <optional>

#include "core/error.h"

namespace kf {
namespace {

constexpr std::size_t kMost = 1'000'000;

[[noreturn]] void refuse(std::string_view list) {
  fail(Code::communication, "'{}' is no list of machines or tasks as Slurm writes them", list);
}

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size() && value >= 0 && text[0] != '-';
  return whole ? std::optional(value) : std::nullopt;
}

/// Cuts at commas that stand in no brackets.
std::vector<std::string_view> items(std::string_view list) {
  std::vector<std::string_view> out;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i == list.size() || (list[i] == ',' && depth == 0)) {
      out.push_back(list.substr(begin, i - begin));
      begin = i + 1;
    } else {
      depth += list[i] == '[' ? 1 : 0;
      depth -= list[i] == ']' ? 1 : 0;
    }
  }
  return out;
}

/// "01-03" -> 01, 02, 03; "7" -> 7: with as many digits as it is written with.
std::vector<std::string> numbers(std::string_view range, std::string_view list) {
  const std::size_t dash = range.find('-');
  const std::string_view first = range.substr(0, dash), last = dash == std::string_view::npos ? first : range.substr(dash + 1);
  const auto low = first.empty() ? std::nullopt : number(first), high = last.empty() ? std::nullopt : number(last);
  if (!low || !high || *high < *low || static_cast<std::size_t>(*high - *low) >= kMost) {
    refuse(list);
  }
  std::vector<std::string> out;
  for (std::int64_t value = *low; value <= *high; ++value) {
    std::string text = std::to_string(value);
    text.insert(0, text.size() < first.size() ? first.size() - text.size() : 0, '0');
    out.push_back(text);
  }
  return out;
}

/// One item; brackets may stand anywhere and more than once ("rack[1-2]n[1-4]").
void expand(const std::string& before, std::string_view rest, std::string_view list, std::vector<std::string>& out) {
  const std::size_t open = rest.find('[');
  if (open == std::string_view::npos) {
    out.push_back(before + std::string(rest));
    if (out.back().empty() || rest.find(']') != std::string_view::npos || out.size() > kMost) {
      refuse(list);
    }
    return;
  }
  const std::size_t close = rest.find(']', open);
  if (close == std::string_view::npos) {
    refuse(list);
  }
  for (const std::string_view range : items(rest.substr(open + 1, close - open - 1))) {
    for (const std::string& text : numbers(range, list)) {
      expand(before + std::string(rest.substr(0, open)) + text, rest.substr(close + 1), list, out);
    }
  }
}

}  // namespace

std::vector<std::string> expand_nodes(std::string_view list) {
  std::vector<std::string> out;
  for (const std::string_view item : items(list)) {
    expand("", item, list, out);
  }
  return out;
}

std::vector<std::int64_t> expand_counts(std::string_view list) {
  std::vector<std::int64_t> out;
  for (std::string_view item : items(list)) {
    const std::size_t times = item.find("(x");
    std::optional<std::int64_t> repeat = 1;
    if (times != std::string_view::npos && item.ends_with(')')) {
      repeat = number(item.substr(times + 2, item.size() - times - 3));
      item = item.substr(0, times);
    }
    const std::optional<std::int64_t> count = item.empty() ? std::nullopt : number(item);
    if (!count || !repeat || out.size() + static_cast<std::size_t>(*repeat) > kMost) {
      refuse(list);
    }
    out.insert(out.end(), static_cast<std::size_t>(*repeat), *count);
  }
  return out;
}

std::vector<std::string> hosts_of_tasks(const std::vector<std::string>& nodes, const std::vector<std::int64_t>& counts) {
  if (nodes.size() != counts.size()) {
    return {};
  }
  std::vector<std::string> out;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    out.insert(out.end(), static_cast<std::size_t>(counts[i]), nodes[i]);
  }
  return out;
}

}  // namespace kf
