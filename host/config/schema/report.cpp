#include "config/schema/report.h"

#include <algorithm>

#include "config/schema/schema.h"
#include "core/ascii.h"
#include "core/text.h"

namespace kf::config {
namespace {

constexpr std::size_t kColumn = 21;  // where messages start, unless a place needs more room
constexpr std::size_t kLongestPlace = 48;
constexpr std::size_t kMostProblems = 200;  // shown; whoever has more is about to fix something at the root of them

std::string place(const Origin& origin) {
  switch (origin.kind) {
    case Origin::Kind::fallback: return "default";
    case Origin::Kind::cli: return origin.file;
    default: return origin.line == 0 ? origin.file : origin.column == 0 ? to_text(origin) : format("{}:{}", to_text(origin), origin.column);
  }
}

/// A source line fit for a terminal: no control characters, not endless.
std::string shown(std::string_view line) {
  std::string out(trim(line));
  if (out.size() > 120) {
    out = out.substr(0, 120) + "...";
  }
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20) {
      c = ' ';
    }
  }
  return out;
}

bool has_line(const Origin& origin) { return origin.kind != Origin::Kind::cli && origin.line > 0 && !origin.text.empty(); }

std::string other_text(const Origin& origin) {
  return has_line(origin) ? format("and {}: {}", place(origin), shown(origin.text)) : "and " + place(origin);
}

std::string problem_text(const Problem& problem, std::size_t column) {
  const std::string where = place(problem.origin);
  const std::string margin(column, ' ');
  std::string out = "  " + where;
  out += out.size() + 1 < column ? std::string(column - out.size(), ' ') : "\n" + margin;
  out += problem.message + "\n";
  if (has_line(problem.origin)) {
    out += format("{}{} | {}\n", margin, problem.origin.line, shown(problem.origin.text));
  }
  for (const Origin& other : problem.others) {
    out += margin + other_text(other) + "\n";
  }
  return out;
}

/// The section that a problem is about: the first that its message names, as [section] or section.key, or else its place ("--section.key");
/// "" where there is none.
std::string section_of(const Problem& problem) {
  for (const std::string& text : {problem.message, problem.origin.kind == Origin::Kind::cli ? problem.origin.file : std::string()}) {
    const std::size_t end = text.find(']');
    if (text.starts_with('[') && end != std::string::npos && is_section(text.substr(1, end - 1))) {
      return text.substr(1, end - 1);
    }
    const auto is_part = [](char c) { return is_alnum(c) || c == '_'; };
    for (std::size_t dot = text.find('.'); dot != std::string::npos; dot = text.find('.', dot + 1)) {
      std::size_t begin = dot;
      while (begin > 0 && is_part(text[begin - 1])) {
        --begin;
      }
      const std::size_t last = static_cast<std::size_t>(
          std::find_if_not(text.begin() + static_cast<std::ptrdiff_t>(dot) + 1, text.end(), is_part) - text.begin());
      if (find_row(text.substr(begin, last - begin)) != nullptr && is_section(text.substr(begin, dot - begin))) {
        return text.substr(begin, dot - begin);
      }
    }
  }
  return {};
}

/// What to look at next: the sections of the problems.
std::string keys_hint(const Report& report) {
  std::vector<std::string> sections;
  for (const Problem& problem : report.problems) {
    const std::string section = section_of(problem);
    if (!section.empty() && std::find(sections.begin(), sections.end(), section) == sections.end()) {
      sections.push_back(section);
    }
  }
  if (sections.empty()) {
    return "`kf-host config keys` lists all keys";
  }
  return format("`kf-host config keys {}` lists the keys of a section{}", sections.front(),
                sections.size() > 1 ? " (here: " + join(sections, ", ") + ")" : "");
}

}  // namespace

std::string to_text(const Report& report) {
  std::size_t column = kColumn;
  for (const Problem& problem : report.problems) {
    const std::size_t length = place(problem.origin).size();
    if (length <= kLongestPlace) {
      column = std::max(column, length + 4);
    }
  }
  const std::size_t count = report.problems.size();
  std::string out = format("{} {} in the job\n", count, count == 1 ? "problem" : "problems");
  for (std::size_t i = 0; i < std::min(count, kMostProblems); ++i) {
    out += problem_text(report.problems[i], column);
  }
  if (count > kMostProblems) {
    out += format("  ... and {} more\n", count - kMostProblems);
  }
  return out + "nothing was started; " + keys_hint(report);
}

}  // namespace kf::config
