#include "config/load/cli.h"

#include <cctype>
#include <charconv>

#include "config/schema/schema.h"
#include "config/tree/literal.h"
#include "core/text.h"

namespace kf::config {
namespace {

constexpr std::size_t kMaxDepth = 16;

Origin origin_of(const std::string& option, int position) { return {Origin::Kind::cli, option, position, 0, ""}; }

/// "datasets[0]" to a name and its indices; false when it is malformed.
bool parse_segment(const std::string& segment, std::vector<Override::Step>& path) {
  const std::size_t bracket = segment.find('[');
  const std::string name = segment.substr(0, bracket);
  if (name.empty()) {
    return false;
  }
  path.push_back({name, 0, false});
  for (std::size_t at = bracket; at < segment.size();) {
    const std::size_t close = segment.find(']', at);
    if (segment[at] != '[' || close == std::string::npos) {
      return false;
    }
    std::size_t index = 0;
    const char* const last = segment.data() + close;
    const auto [end, error] = std::from_chars(segment.data() + at + 1, last, index);
    if (error != std::errc() || end != last) {
      return false;
    }
    path.push_back({"", index, true});
    at = close + 1;
  }
  return true;
}

std::optional<std::vector<Override::Step>> parse_path(std::string_view key) {
  std::vector<Override::Step> path;
  for (const std::string& segment : split(key, '.')) {
    if (!parse_segment(segment, path) || path.size() > kMaxDepth) {
      return std::nullopt;
    }
  }
  return path;
}

/// Enters the list element or reports why there is none.
Node* enter_index(Node& node, const Override::Step& step, const Override& option, Report& report) {
  if (node.is_null() || (node.table() && node.table()->empty())) {
    node = Node(Array(), option.value.origin);
  }
  Array* list = node.array();
  if (!list) {
    report.problems.push_back({option.value.origin, "what stands before '[' is not a list"});
    return nullptr;
  }
  if (step.index > list->size()) {
    report.problems.push_back({option.value.origin, format("index {} is past the end; the list has {} {}", step.index, list->size(),
                                                           list->size() == 1 ? "entry" : "entries")});
    return nullptr;
  }
  if (step.index == list->size()) {
    list->emplace_back();
    list->back().origin = option.value.origin;
  }
  return &(*list)[step.index];
}

Node* enter_name(Node& node, const Override::Step& step, const Override& option) {
  if (!node.table()) {
    node.value = Table();  // its key stays where it is
    node.origin = option.value.origin;
  }
  Table& table = *node.table();
  const bool known = table.find(step.name) != nullptr;
  Node& child = table[step.name];
  if (!known) {
    child.key_origin = option.value.origin;
    child.origin = option.value.origin;
  }
  return &child;
}

}  // namespace

namespace {

bool is_boolean_word(const std::string& word) {
  const std::string small = lower(word);
  return small == "true" || small == "false" || small == "yes" || small == "no" || small == "on" || small == "off";
}

/// Whether `word` may be the value of `option`, which has none of its own.
bool may_be_value(const std::string& option, const std::string& word) {
  const bool negative = word.size() > 1 && word[0] == '-' && (std::isdigit(static_cast<unsigned char>(word[1])) != 0 || word[1] == '.');
  if (word.starts_with("-") && !negative) {
    return false;
  }
  const Row* const row = find_row(std::string_view(option).substr(2));
  if (row != nullptr) {
    return !type_row(row->type).flag || is_boolean_word(word);
  }
  return !word.ends_with(".toml") && !word.ends_with(".lua");
}

}  // namespace

std::vector<std::string> join_values(const std::vector<std::string>& words) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const bool open = word.starts_with("--") && word.find('.') != std::string::npos && word.find('=') == std::string::npos;
    if (open && i + 1 < words.size() && may_be_value(word, words[i + 1])) {
      out.push_back(word + "=" + words[++i]);
    } else {
      out.push_back(word);
    }
  }
  return out;
}

std::optional<Override> parse_override(const std::string& argument, int position, Report& report) {
  const std::size_t equals = argument.find('=');
  const std::string option = argument.substr(0, equals);
  const Origin origin = origin_of(option, position);
  if (!argument.starts_with("--")) {
    report.problems.push_back({origin_of(argument, position), "is not an option; write --section.key=value"});
    return std::nullopt;
  }
  if (!is_utf8(argument)) {
    report.problems.push_back(
        {origin_of("command line", position), "an argument is not valid UTF-8: " + kf::quoted(argument.substr(0, 60))});
    return std::nullopt;
  }
  std::optional<std::vector<Override::Step>> path = parse_path(std::string_view(option).substr(2));
  if (!path) {
    report.problems.push_back({origin, "is not a key; write --section.key=value or --section.list[0].key=value"});
    return std::nullopt;
  }
  Override out{std::move(*path), {}};
  if (equals == std::string::npos) {
    out.value = Node(true, origin);  // a flag
    out.value.loose = true;
    out.value.origin.text = "true";
  } else {
    out.value = parse_value(std::string_view(argument).substr(equals + 1), origin);
  }
  out.value.key_origin = origin;
  return out;
}

void apply_override(Table& tree, const Override& option, Report& report) {
  if (option.path.size() == 1 && is_section(option.path[0].name) && !option.value.table()) {
    report.problems.push_back(
        {option.value.origin, format("{} is a section, not a value; write --{}.KEY=VALUE", option.path[0].name, option.path[0].name)});
    return;
  }
  Node root{Node::Value(std::move(tree))};
  Node* at = &root;
  for (const Override::Step& step : option.path) {
    at = step.is_index ? enter_index(*at, step, option, report) : enter_name(*at, step, option);
    if (at == nullptr) {
      break;
    }
  }
  if (at != nullptr && at->table() && option.value.table()) {
    merge(*at->table(), *option.value.table());
  } else if (at != nullptr) {
    *at = option.value;
  }
  tree = std::move(*root.table());
}

}  // namespace kf::config
