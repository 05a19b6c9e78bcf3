#pragma once
// Patterns over dotted names: which weights a setting or a script means.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// A glob over the whole name (`*` any run, dots included; `?` one character), or after "re:" a regular expression (ECMAScript) that may
/// match anywhere in it.
class NamePattern {
 public:
  /// Throws Code::config for a regular expression that does not compile, naming `key`, the setting it stands in.
  NamePattern(std::string text, const std::string& key);
  ~NamePattern();
  NamePattern(NamePattern&&) noexcept;
  NamePattern& operator=(NamePattern&&) noexcept;

  bool matches(std::string_view name) const;
  const std::string& text() const { return text_; }

 private:
  struct Regex;
  std::string text_;
  std::unique_ptr<Regex> regex_;  // none: a glob
};

/// For each of `names` whether one of `patterns` matches it. A pattern that matches no name throws Code::config with `key` and the names
/// that come nearest.
std::vector<bool> match_names(const std::vector<std::string>& patterns, const std::vector<std::string>& names, const std::string& key);

}  // namespace kf
