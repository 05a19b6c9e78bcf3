#include "core/name_pattern.h"

#include <algorithm>
#include <regex>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace kf {
namespace {

constexpr std::string_view kRegex = "re:";

std::size_t longest_common_run(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1, 0);
  std::size_t best = 0;
  for (const char c : a) {
    std::size_t diagonal = 0;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = c == b[j - 1] ? diagonal + 1 : 0;
      diagonal = above;
      best = std::max(best, row[j]);
    }
  }
  return best;
}

/// The three names that share the most with the pattern's letters.
std::vector<std::string> near_names(std::string_view pattern, std::vector<std::string> names) {
  std::string letters(pattern.starts_with(kRegex) ? pattern.substr(kRegex.size()) : pattern);
  std::erase_if(letters, [](char c) { return std::string_view("*?^$()[]{}|+\\").find(c) != std::string_view::npos; });
  const auto misfit = [&letters](const std::string& name) {
    return static_cast<std::int64_t>(edit_distance(letters, name)) - 3 * static_cast<std::int64_t>(longest_common_run(letters, name));
  };
  std::vector<std::pair<std::int64_t, std::string>> ranked;
  for (std::string& name : names) {
    const std::int64_t rank = misfit(name);
    ranked.emplace_back(rank, std::move(name));
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> out;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, ranked.size()); ++i) {
    out.push_back(ranked[i].second);
  }
  return out;
}

}  // namespace

struct NamePattern::Regex {
  std::regex expression;
};

NamePattern::NamePattern(std::string text, const std::string& key) : text_(std::move(text)) {
  if (!text_.starts_with(kRegex)) {
    return;
  }
  try {
    regex_ = std::make_unique<Regex>(Regex{std::regex(text_.substr(kRegex.size()), std::regex::ECMAScript | std::regex::optimize)});
  } catch (const std::regex_error& e) {
    fail(Code::config, "{}: '{}' is no regular expression: {}", key, text_, e.what());
  }
}

NamePattern::~NamePattern() = default;
NamePattern::NamePattern(NamePattern&&) noexcept = default;
NamePattern& NamePattern::operator=(NamePattern&&) noexcept = default;

bool NamePattern::matches(std::string_view name) const {
  return regex_ ? std::regex_search(name.begin(), name.end(), regex_->expression) : glob_match(text_, name);
}

std::vector<bool> match_names(const std::vector<std::string>& patterns, const std::vector<std::string>& names, const std::string& key) {
  std::vector<bool> out(names.size(), false);
  for (const std::string& text : patterns) {
    const NamePattern pattern(text, key);
    bool used = false;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (pattern.matches(names[i])) {
        out[i] = true;
        used = true;
      }
    }
    KF_CHECK(used, Code::config, "{}: no weight is called '{}'{}", key, text,
             names.empty() ? "" : "; near: " + join(near_names(text, names), ", "));
  }
  return out;
}

}  // namespace kf
