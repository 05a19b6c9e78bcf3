#include "data/tokenizer/json_member.h"

#include <algorithm>

#include "core/text.h"
#include "data/tokenizer/json.h"

namespace kf::json {
namespace {

std::size_t behind_string(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    at += text[at] == '\\' ? 1 : 0;
  }
  return at + 1;
}

}  // namespace

std::optional<std::string_view> member(std::string_view text, std::string_view wanted) {
  int depth = 0;
  std::string_view name;
  std::optional<std::size_t> begin;  // of the value that is read at depth 1
  std::optional<std::string_view> found;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') {
      const std::size_t end = std::min(behind_string(text, at), text.size());
      name = depth == 1 && !begin ? text.substr(at + 1, end - at - 2) : name;
      at = end - 1;
    } else if (depth == 1 && c == ':' && !begin) {
      begin = at + 1;
    } else if (depth == 1 && (c == ',' || c == '}') && begin) {
      found = name == wanted ? trim(text.substr(*begin, at - *begin)) : found;  // of several the last counts
      begin.reset();
    }
    depth += c == '{' || c == '[' ? 1 : 0;
    depth -= c == '}' || c == ']' ? 1 : 0;
  }
  return found;
}

std::string with_member(const std::string& text, std::string_view name, const std::string& value) {
  const std::string object = text.empty() ? "{}\n" : text;
  if (const std::optional<std::string_view> there = member(object, name)) {
    const auto begin = static_cast<std::size_t>(there->data() - object.data());
    return object.substr(0, begin) + value + object.substr(begin + there->size());
  }
  const std::size_t first = object.find('{') + 1;
  const bool alone = object.find_first_not_of(" \t\r\n", first) == object.find('}', first);
  return object.substr(0, first) + "\n  " + quote(name) + ": " + value + (alone ? "\n" : ",") + object.substr(first);
}

}  // namespace kf::json
