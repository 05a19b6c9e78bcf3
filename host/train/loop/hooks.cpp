#include "train/loop/hooks.h"

#include <algorithm>
#include <iterator>

#include "core/error.h"
#include "core/log.h"

namespace kf {

Hooks::Hooks(std::vector<std::unique_ptr<Hook>> of_job, std::vector<std::unique_ptr<Hook>> others) : hooks_(std::move(others)) {
  for (const std::unique_ptr<Hook>& hook : hooks_) {
    others_.insert(hook.get());
  }
  add(std::move(of_job));
}

/// Before those that are there, as far as their priorities are equal.
void Hooks::add(std::vector<std::unique_ptr<Hook>> hooks) {
  hooks_.insert(hooks_.begin(), std::make_move_iterator(hooks.begin()), std::make_move_iterator(hooks.end()));
  std::stable_sort(hooks_.begin(), hooks_.end(), [](const auto& a, const auto& b) { return a->priority() > b->priority(); });
}

std::vector<std::unique_ptr<Hook>>::iterator Hooks::find(const std::string& name) {
  return std::find_if(hooks_.begin(), hooks_.end(), [&](const std::unique_ptr<Hook>& hook) { return hook->name() == name; });
}

void Hooks::call(Event event, HookContext& context) {
  for (const std::unique_ptr<Hook>& hook : hooks_) {
    if (hook->wants(event, context.state.step)) {
      hook->call(event, context);
    }
  }
}

bool Hooks::wants(Event event, std::int64_t step) const {
  return std::any_of(hooks_.begin(), hooks_.end(), [&](const std::unique_ptr<Hook>& hook) { return hook->wants(event, step); });
}

std::map<std::string, config::Node> Hooks::state() const {
  std::map<std::string, config::Node> states;
  for (const std::unique_ptr<Hook>& hook : hooks_) {
    if (config::Node state = hook->state(); !state.is_null()) {
      states[hook->name()] = std::move(state);
    }
  }
  return states;
}

void Hooks::load(const std::map<std::string, config::Node>& states) {
  for (const auto& [name, state] : states) {
    const auto hook = find(name);
    if (hook == hooks_.end()) {
      log::warn("the checkpoint holds the state of hook '{}', which this job does not have", name);
    } else {
      (*hook)->load(state);
    }
  }
}

void Hooks::hand_over(const std::vector<std::unique_ptr<Hook>>& fresh) {
  for (const std::unique_ptr<Hook>& hook : fresh) {
    const auto old = find(hook->name());
    if (old == hooks_.end() || others_.contains(old->get())) {
      continue;
    }
    if (const config::Node state = (*old)->state(); !state.is_null()) {
      hook->load(state);
    }
  }
}

void Hooks::exchange(std::vector<std::unique_ptr<Hook>> fresh) {
  std::erase_if(hooks_, [this](const std::unique_ptr<Hook>& hook) { return !others_.contains(hook.get()); });
  add(std::move(fresh));
}

}  // namespace kf
