#include "metrics/eval_result.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "config/tree/finite.h"
#include "config/tree/json.h"
#include "core/error.h"
#include "metrics/eval_table.h"
#include "metrics/names/names.h"

namespace kf {
namespace {

using config::Node;
using config::Table;

/// Numbers that not every evaluation has.
constexpr std::pair<std::string_view, std::optional<double> EvalResult::*> kOptional[] = {{"bits_per_byte", &EvalResult::bits_per_byte},
                                                                                          {"accuracy", &EvalResult::accuracy},
                                                                                          {"ema", &EvalResult::ema},
                                                                                          {"mtp_acceptance", &EvalResult::mtp_acceptance}};

void read_number(EvalResult& out, const std::string& name, double value) {
  if (name == "loss") {
    out.loss = value;
  } else if (name == "perplexity") {
    out.perplexity = value;
  } else if (name == "tokens") {
    out.tokens = static_cast<std::int64_t>(value);
  }
  for (const auto& [known, member] : kOptional) {
    if (name == known) {
      out.*member = value;
    }
  }
}

bool is_number_name(std::string_view name) { return std::find(kEvalNumbers.begin(), kEvalNumbers.end(), name) != kEvalNumbers.end(); }

std::optional<double> own_number(const EvalResult& eval, const std::string& name) {
  if (name == "loss" || name == "perplexity") {
    return !eval.has_loss() ? std::nullopt : std::optional(name == "loss" ? eval.loss : eval.perplexity);
  }
  if (name == "tokens") {
    return static_cast<double>(eval.tokens);
  }
  for (const auto& [known, member] : kOptional) {
    if (name == known) {
      return eval.*member;
    }
  }
  return std::nullopt;
}

}  // namespace

Table to_numbers(const EvalResult& eval) {
  Table out;
  out["loss"] = eval.has_loss() ? Node(eval.loss) : Node();
  out["perplexity"] = eval.has_loss() ? Node(eval.perplexity) : Node();
  out["tokens"] = Node(eval.tokens);
  for (const auto& [name, member] : kOptional) {
    if (const std::optional<double>& value = eval.*member) {
      out[std::string(name)] = Node(*value);
    }
  }
  for (const EvalResult& set : eval.sets) {
    out[set.name] = Node(to_numbers(set));
  }
  return out;
}

EvalResult from_numbers(const Table& numbers, std::int64_t step, const std::string& name) {
  EvalResult out;
  out.step = step;
  out.name = name;
  for (const auto& [key, node] : numbers) {
    if (key == "not_finite") {
      continue;
    }
    if (node.table() != nullptr) {
      KF_CHECK(!is_number_name(key) && node.table()->find("loss") != nullptr, Code::other, "'{}' of an evaluation is no number", key);
      out.sets.push_back(from_numbers(*node.table(), step, key));
    } else {
      const std::optional<double> value = config::real_at(numbers, key);
      KF_CHECK(value.has_value() || node.is_null(), Code::other, "'{}' of an evaluation is no number", key);
      read_number(out, key, value.value_or(std::nan("")));  // null alone: no label counted
    }
  }
  return out;
}

std::optional<double> find_number(const EvalResult& eval, const std::string& path) {
  const std::size_t dot = path.rfind('.');
  if (dot == std::string::npos) {
    return own_number(eval, path);
  }
  for (const EvalResult& set : eval.sets) {
    if (set.name == path.substr(0, dot)) {
      return own_number(set, path.substr(dot + 1));
    }
  }
  return std::nullopt;
}

std::vector<std::string> number_names(const EvalResult& eval) {
  std::vector<std::string> out;
  for (const std::string_view name : kEvalNumbers) {
    if (own_number(eval, std::string(name))) {
      out.emplace_back(name);
    }
  }
  for (const EvalResult& set : eval.sets) {
    for (const std::string& name : number_names(set)) {
      out.push_back(set.name + "." + name);
    }
  }
  return out;
}

}  // namespace kf
