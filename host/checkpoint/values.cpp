#include "checkpoint/values.h"

#include "core/error.h"
#include "metrics/eval_table.h"

namespace kf {

const config::Node& value_at(const config::Table& values, const std::string& key) {
  static const config::Node nothing;
  const config::Node* const found = values.find(key);
  return found != nullptr ? *found : nothing;
}

std::map<std::string, config::Node> values_under(const config::Table& values, const std::string& group) {
  const std::string start = group + "/";
  std::map<std::string, config::Node> out;
  for (const auto& [key, value] : values) {
    if (key.starts_with(start)) {
      out[key.substr(start.size())] = value;
    }
  }
  return out;
}

void put_under(config::Table& values, const std::string& group, const std::map<std::string, config::Node>& more) {
  for (const auto& [name, value] : more) {
    values[group + "/" + name] = value;
  }
}

void put_eval(config::Table& values, const EvalResult& eval) {
  config::Table out = to_numbers(eval);
  out["step"] = config::Node(eval.step);
  values[kEval] = config::Node(std::move(out));
}

std::optional<EvalResult> eval_in(const config::Table& values) {
  const config::Node& node = value_at(values, kEval);
  if (node.is_null()) {
    return std::nullopt;
  }
  KF_CHECK(node.table() != nullptr && node.table()->find("step") != nullptr, Code::checkpoint,
           "the last evaluation in the checkpoint lacks 'step'");
  const auto* const step = std::get_if<std::int64_t>(&node.table()->find("step")->value);
  KF_CHECK(step != nullptr, Code::checkpoint, "the last evaluation in the checkpoint has no whole number as its step");
  return from_numbers(*node.table(), *step);
}

}  // namespace kf
