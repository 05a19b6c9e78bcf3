#include <algorithm>
#include <cstdio>
#include <iostream>

#include "app/command/checkpoint_commands.h"
#include "app/help/usage.h"
#include "app/line/option_list.h"
#include "checkpoint/difference.h"
#include "config/tree/json.h"
#include "core/text.h"
#include "core/text_table.h"

namespace kf {
namespace {

constexpr std::int64_t kUsualLimit = 20;

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3e", value);
  return text;
}

std::string shape_text(const Shape& shape) {
  std::vector<std::string> parts;
  for (const std::int64_t dim : shape) {
    parts.push_back(std::to_string(dim));
  }
  return "(" + join(parts, ", ") + ")";
}

/// `limit` of the names, and how many more there are.
void print_names(const std::string& what, const std::vector<std::string>& names, std::size_t limit) {
  for (std::size_t i = 0; i < std::min(limit, names.size()); ++i) {
    std::cout << what << names[i] << '\n';
  }
  if (names.size() > limit) {
    std::cout << what << names.size() - limit << " more (--limit 0 shows all)\n";
  }
}

std::vector<std::string> nan_lines(const std::vector<WeightNans>& nans) {
  std::vector<std::string> out;
  for (const WeightNans& one : nans) {
    out.push_back(format("{} ({} in A, {} in B)", one.name, one.in_a, one.in_b));
  }
  return out;
}

void print_text(const WeightDifference& found, std::size_t limit) {
  print_names("only in A: ", found.only_a, limit);
  print_names("only in B: ", found.only_b, limit);
  print_names("", found.misshapen, limit);
  print_names("NaN: ", nan_lines(found.nans), limit);
  std::vector<std::vector<std::string>> rows{{"weight", "shape", "largest |b-a|", "|b-a|", "|b-a| / |a|"}};
  for (std::size_t i = 0; i < std::min(limit, found.moved.size()); ++i) {
    const WeightMove& move = found.moved[i];
    rows.push_back({move.name, shape_text(move.shape), number(move.largest), number(move.norm), number(move.relative)});
  }
  if (!found.moved.empty()) {
    std::cout << text_table(rows, {2, 3, 4});
  }
  if (found.moved.size() > limit) {
    std::cout << found.moved.size() - limit << " more weights that moved less (--limit 0 shows all)\n";
  }
  std::cout << (found.same() ? "the same: " : "") << found.moved.size() << " weights moved, " << found.equal << " are equal";
  if (!found.nans.empty()) {
    std::cout << ", " << found.nans.size() << " hold NaN";
  }
  if (!found.moved.empty()) {
    std::cout << "; over all of them |b-a| is " << number(found.norm) << ", |b-a| / |a| " << number(found.relative);
  }
  std::cout << '\n';
}

config::Node names_node(const std::vector<std::string>& names) {
  config::Array out;
  for (const std::string& name : names) {
    out.emplace_back(name);
  }
  return config::Node(std::move(out));
}

void print_json(const WeightDifference& found, std::size_t limit) {
  config::Array moved;
  for (std::size_t i = 0; i < std::min(limit, found.moved.size()); ++i) {
    const WeightMove& move = found.moved[i];
    config::Table row;
    row["name"] = config::Node(move.name);
    row["max_abs"] = config::Node(move.largest);
    row["norm"] = config::Node(move.norm);
    row["relative"] = config::Node(move.relative);
    moved.emplace_back(std::move(row));
  }
  config::Array nans;
  for (std::size_t i = 0; i < std::min(limit, found.nans.size()); ++i) {
    config::Table row;
    row["name"] = config::Node(found.nans[i].name);
    row["in_a"] = config::Node(found.nans[i].in_a);
    row["in_b"] = config::Node(found.nans[i].in_b);
    nans.emplace_back(std::move(row));
  }
  config::Table out;
  out["nan"] = config::Node(std::move(nans));
  out["nan_count"] = config::Node(static_cast<std::int64_t>(found.nans.size()));
  out["only_a"] = names_node(found.only_a);
  out["only_b"] = names_node(found.only_b);
  out["misshapen"] = names_node(found.misshapen);
  out["moved"] = config::Node(std::move(moved));
  out["moved_count"] = config::Node(static_cast<std::int64_t>(found.moved.size()));
  out["equal_count"] = config::Node(found.equal);
  out["norm"] = config::Node(found.norm);
  out["relative"] = config::Node(found.relative);
  std::cout << config::to_json(config::Node(std::move(out))) << '\n';
}

}  // namespace

int checkpoint_diff(const Arguments& args) {
  const OptionList list = parse_options(args, {"kf-host checkpoint diff", {"--limit", "--format"}, {}, false});
  KF_CHECK(list.words.size() == 2, Code::config, "two sources, A and B\n{}", usage::kCheckpoint);
  const std::int64_t limit = list.has("--limit") ? option_number<std::int64_t>("--limit", list.last("--limit"), 0, 1e9) : kUsualLimit;
  if (list.has("--format")) {
    check_word("--format", list.last("--format"), {"text", "json"});
  }
  const WeightsAt a = open_weights(list.words[0]), b = open_weights(list.words[1]);
  const WeightDifference found = difference(a.tensors, b.tensors);
  const std::size_t most = limit == 0 ? static_cast<std::size_t>(-1) : static_cast<std::size_t>(limit);
  list.last("--format") == "json" ? print_json(found, most) : print_text(found, most);
  return 0;
}

}  // namespace kf
