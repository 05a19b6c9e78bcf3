#include "metrics/prometheus/exposition.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/text.h"
#include "metrics/names/names.h"

namespace kf {
namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '\\': out += "\\\\"; break;
      case '"': out += "\\\""; break;
      case '\n': out += "\\n"; break;
      default: out += c;
    }
  }
  return out;
}

std::string number_text(double value) {
  if (std::isnan(value)) {
    return "NaN";
  }
  return std::isinf(value) ? value > 0 ? "+Inf" : "-Inf" : to_text(value);
}

/// What names.def says of it.
std::string help_of(const std::string& name) {
  const auto rows = number_rows();
  const auto found = std::find_if(rows.begin(), rows.end(), [&name](const NumberRow& row) { return row.name == name; });
  std::string out;
  for (const char c : found != rows.end() ? found->doc : std::string_view()) {
    out += c == '\\' ? "\\\\" : std::string(1, c);
  }
  return out;
}

std::string label_text(const Labels& labels) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : labels) {
    parts.push_back(format("{}=\"{}\"", name, escaped(value)));
  }
  return join(parts, ",");
}

}  // namespace

std::string exposition(const Values& values, const Labels& labels) {
  std::map<std::string, std::string> lines;  // all of a name stand together
  std::map<std::string, std::string> helps;
  for (const auto& [name, value] : values) {
    std::string plain = name;
    std::replace_if(
        plain.begin(), plain.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_'; }, '_');
    Labels own = labels;
    if (plain != name) {
      own.emplace_back("metric", name);
    }
    lines["kf_" + plain] += "kf_" + plain + "{" + label_text(own) + "} " + number_text(value) + "\n";
    helps["kf_" + plain] = help_of(name);
  }
  std::string out;
  for (const auto& [name, text] : lines) {
    if (!helps[name].empty()) {
      out += format("# HELP {} {}\n", name, helps[name]);
    }
    out += format("# TYPE {} gauge\n", name) + text;
  }
  return out;
}

}  // namespace kf
