#include "metrics/tracker/numbers.h"

#include <string>
#include <string_view>
#include <unordered_map>

#include "metrics/eval_table.h"

namespace kf {
namespace {

void add_eval(Values& out, const config::Table& numbers, const std::string& prefix) {
  for (const auto& [name, node] : numbers) {
    if (const config::Table* const set = node.table()) {
      add_eval(out, *set, prefix + name + "/");
    } else if (const auto* const real = std::get_if<double>(&node.value)) {
      out.emplace_back(prefix + name, *real);
    } else if (const auto* const integer = std::get_if<std::int64_t>(&node.value)) {
      out.emplace_back(prefix + name, static_cast<double>(*integer));
    }
  }
}

}  // namespace

Values tracked_numbers(const StepRow& row) {
  Values out;
  each_number(row, [&](const char* name, bool mean, auto value) {
    if (std::string_view(name) != "step" && (!mean || row.has_loss)) {
      out.emplace_back(name, static_cast<double>(value));
    }
  });
  std::unordered_map<std::string_view, std::size_t> places;
  for (const auto& [name, value] : row.extra) {  // a later value of a name replaces the earlier one
    const auto [place, is_new] = places.try_emplace(name, out.size());
    if (is_new) {
      out.emplace_back(name, value);
    } else {
      out[place->second].second = value;
    }
  }
  return out;
}

Values tracked_numbers(const EvalResult& result) {
  Values out;
  add_eval(out, to_numbers(result), "eval/");
  return out;
}

}  // namespace kf
