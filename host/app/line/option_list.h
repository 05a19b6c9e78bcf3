#pragma once
// The arguments of a command with options of its own: `--name value`, `--name=value`, `--flag`, `--section.key=value`.

#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"

namespace kf {

/// What a command knows.
struct OptionNames {
  std::string command;              // "kf-host generate", for messages
  std::vector<std::string> values;  // options with a value
  std::vector<std::string> flags;   // options without
  bool overrides = false;           // settings (with a dot in their name) may be given, too
};

struct OptionList {
  std::vector<std::string> words;                            // what is no option
  std::vector<std::pair<std::string, std::string>> options;  // in order; flags have ""
  std::vector<std::string> overrides;                        // "--section.key=value"

  /// The last value of an option, "" without.
  std::string last(const std::string& name) const;
  bool has(const std::string& name) const;
};

/// Throws Code::config for an unknown option (naming the nearest), a missing value, or a value of a flag.
OptionList parse_options(const std::vector<std::string>& args, const OptionNames& names);

/// The value of an option as a number from `low` to `high`. Throws Code::config.
template <class T>
T option_number(const std::string& option, const std::string& text, double low, double high) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  KF_CHECK(error == std::errc() && end == text.data() + text.size(), Code::config, "{}: '{}' is not a number", option, text);
  KF_CHECK(static_cast<double>(value) >= low && static_cast<double>(value) <= high, Code::config, "{}: {} is not between {} and {}", option,
           value, low, high);
  return value;
}

/// Throws Code::config where the value is none of `allowed`.
void check_word(const std::string& option, const std::string& value, const std::vector<std::string>& allowed);

}  // namespace kf
