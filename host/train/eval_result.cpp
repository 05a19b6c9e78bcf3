#include "train/eval_result.h"

#include <utility>

#include "config/finite.h"
#include "config/json.h"
#include "core/error.h"
#include "train/eval_table.h"

namespace kf {
namespace {

using config::Node;
using config::Table;

void read_number(EvalResult& out, const std::string& name, double value) {
  if (name == "loss") {
    out.loss = value;
  } else if (name == "perplexity") {
    out.perplexity = value;
  } else if (name == "tokens") {
    out.tokens = static_cast<std::int64_t>(value);
  } else if (name == "bits_per_byte") {
    out.bits_per_byte = value;
  } else if (name == "accuracy") {
    out.accuracy = value;
  } else if (name == "ema") {
    out.ema = value;
  }
}

bool is_number_name(const std::string& name) {
  for (const char* known : {"loss", "perplexity", "tokens", "bits_per_byte", "accuracy", "ema"}) {
    if (name == known) {
      return true;
    }
  }
  return false;
}

std::optional<double> own_number(const EvalResult& eval, const std::string& name) {
  if (name == "loss") {
    return eval.loss;
  }
  if (name == "perplexity") {
    return eval.perplexity;
  }
  if (name == "tokens") {
    return static_cast<double>(eval.tokens);
  }
  return name == "bits_per_byte" ? eval.bits_per_byte : name == "accuracy" ? eval.accuracy : name == "ema" ? eval.ema : std::nullopt;
}

}  // namespace

Table to_numbers(const EvalResult& eval) {
  Table out;
  out["loss"] = Node(eval.loss);
  out["perplexity"] = Node(eval.perplexity);
  out["tokens"] = Node(eval.tokens);
  const std::pair<const char*, std::optional<double>> more[] = {
      {"bits_per_byte", eval.bits_per_byte}, {"accuracy", eval.accuracy}, {"ema", eval.ema}};
  for (const auto& [name, value] : more) {
    if (value) {
      out[name] = Node(*value);
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
      KF_CHECK(value.has_value(), Code::other, "'{}' of an evaluation is no number", key);
      read_number(out, key, *value);
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

}  // namespace kf
