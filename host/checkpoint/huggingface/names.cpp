#include "checkpoint/huggingface/names.h"

namespace kf::huggingface {

std::optional<std::vector<std::string>> match(std::string_view pattern, std::string_view name) {
  std::vector<std::string> numbers;
  while (!pattern.empty()) {
    if (pattern.front() != '{') {
      if (name.empty() || name.front() != pattern.front()) {
        return std::nullopt;
      }
      pattern.remove_prefix(1);
      name.remove_prefix(1);
      continue;
    }
    const std::size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
    if (digits == 0) {
      return std::nullopt;
    }
    numbers.emplace_back(name.substr(0, digits));
    name.remove_prefix(digits);
    pattern.remove_prefix(pattern.find('}') + 1);
  }
  return name.empty() ? std::optional(numbers) : std::nullopt;
}

std::string filled(std::string_view pattern, const std::vector<std::string>& numbers) {
  std::string out;
  std::size_t next = 0;
  while (!pattern.empty()) {
    if (pattern.front() == '{') {
      out += numbers.at(next++);
      pattern.remove_prefix(pattern.find('}') + 1);
    } else {
      out += pattern.front();
      pattern.remove_prefix(1);
    }
  }
  return out;
}

}  // namespace kf::huggingface
