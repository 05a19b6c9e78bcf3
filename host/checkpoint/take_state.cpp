#include "checkpoint/take_state.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

#include "checkpoint/files/weights.h"
#include "core/error.h"
#include "core/log.h"
#include "core/name_pattern.h"
#include "core/text.h"
#include "optim/averaging.h"

namespace kf {
namespace {

template <class Map>
void compare_names(const Map& stored, const Map& taken, std::vector<std::string>& unknown, std::vector<std::string>& missing) {
  for (const auto& [name, value] : stored) {
    if (taken.count(name) == 0) {
      unknown.push_back(name);
    }
  }
  for (const auto& [name, value] : taken) {
    if (stored.count(name) == 0) {
      missing.push_back(name);
    }
  }
}

/// "exp_avg of 12 weights, step": names by slot.
std::string slots_text(const std::vector<std::string>& names) {
  std::map<std::string, std::int64_t> counts;
  for (const std::string& name : names) {
    ++counts[name.substr(0, name.find('.'))];
  }
  std::vector<std::string> out;
  for (const auto& [slot, count] : counts) {
    out.push_back(count > 1 ? format("{} of {} weights", slot, count) : slot);
  }
  return out.empty() ? "nothing" : join(out, ", ");
}

bool is_average(const std::string& name) { return name.starts_with(kAveragePrefix); }

/// Everything of `fresh` that `stored` has not, or has in another shape.
void fill_up(OptimizerState& stored, const OptimizerState& fresh) {
  for (const auto& [name, tensor] : fresh.tensors) {
    at::Tensor& mine = stored.tensors[name];
    if (!mine.defined() || mine.sizes() != tensor.sizes()) {
      mine = tensor.clone();
    }
  }
  stored.integers.insert(fresh.integers.begin(), fresh.integers.end());
  stored.reals.insert(fresh.reals.begin(), fresh.reals.end());
}

std::vector<std::string> names_in(const OptimizerState& state) {
  std::vector<std::string> out;
  for (const auto& [name, tensor] : state.tensors) {
    out.push_back(name);
  }
  for (const auto& [name, number] : state.integers) {
    out.push_back(name);
  }
  for (const auto& [name, number] : state.reals) {
    out.push_back(name);
  }
  return out;
}

}  // namespace

MomentNames::MomentNames(Model& model, const LoadRules& rules) : names_(rules.names) {
  std::vector<NamePattern> patterns;
  for (const std::string& text : rules.exclude) {
    patterns.emplace_back(text, "checkpoint.exclude_from_loading");
  }
  for (const ParameterPtr& weight : model.parameters()) {
    weights_.insert(weight->name);
    if (std::any_of(patterns.begin(), patterns.end(), [&](const NamePattern& pattern) { return pattern.matches(weight->name); })) {
      excluded_.insert(weight->name);
    }
  }
}

std::string MomentNames::of(const std::string& name) const {
  for (std::size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
    const std::string weight = names_.of(name.substr(dot + 1));
    if (weights_.contains(weight)) {
      return excluded_.contains(weight) ? "" : name.substr(0, dot + 1) + weight;
    }
  }
  return name;
}

void take_all(Optimizer& optimizer, const OptimizerState& stored, const fs::path& path,
              const std::function<bool(const std::string&)>& elsewhere) {
  optimizer.load(stored);
  OptimizerState taken = optimizer.state();
  std::erase_if(taken.tensors, [&](const auto& tensor) { return elsewhere(tensor.first); });
  std::vector<std::string> unknown, missing;
  compare_names(stored.tensors, taken.tensors, unknown, missing);
  compare_names(stored.integers, taken.integers, unknown, missing);
  compare_names(stored.reals, taken.reals, unknown, missing);
  const std::string text = list_names("unknown to the optimizer", unknown) + list_names("missing in the file", missing);
  KF_CHECK(text.empty(), Code::checkpoint,
           "{} does not hold the state of this optimizer{}\n  checkpoint.init_from starts a new run from the weights alone", path, text);
}

void take_common(Optimizer& optimizer, OptimizerState stored, const StateRules& state, bool strict, const fs::path& path) {
  if (!state.optimizer) {
    log::info("the optimizer's state in {} is left out (checkpoint.exclude_from_loading): it begins anew", path);
    return;
  }
  if (!state.moments) {
    std::erase_if(stored.tensors, [](const auto& tensor) { return !is_average(tensor.first); });
  }
  const std::vector<std::string> before = names_in(stored);
  const std::set<std::string> had(before.begin(), before.end());
  const OptimizerState fresh = optimizer.state();
  fill_up(stored, fresh);
  stored.partial = true;
  optimizer.load(stored);
  const std::vector<std::string> after = names_in(optimizer.state());
  const std::set<std::string> has(after.begin(), after.end());
  std::vector<std::string> kept, added, left;
  std::set_intersection(had.begin(), had.end(), has.begin(), has.end(), std::back_inserter(kept));
  std::set_difference(has.begin(), has.end(), had.begin(), had.end(), std::back_inserter(added));
  std::set_difference(had.begin(), had.end(), has.begin(), has.end(), std::back_inserter(left));
  KF_CHECK(left.empty() || state.other_optimizer || !strict, Code::checkpoint, "{} does not hold the state of this optimizer{}", path,
           list_names("unknown to the optimizer", left));
  log::info("the optimizer's state in {}: kept {}; stays behind: {}; begins anew: {}", path, slots_text(kept), slots_text(left),
            added.empty() ? "what is not kept" : slots_text(added));
}

}  // namespace kf
