#include "train/loop/hooks.h"

#include <algorithm>

#include "core/error.h"
#include "core/log.h"

namespace kf {

Hooks::Hooks(std::vector<std::unique_ptr<Hook>> hooks) : hooks_(std::move(hooks)) { sort(); }

void Hooks::sort() {
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

void Hooks::replace(const std::string& name, std::unique_ptr<Hook> hook) {
  const auto old = find(name);
  KF_CHECK(old != hooks_.end(), Code::script, "there is no hook '{}' whose place another could take", name);
  KF_CHECK(hook->name() == name, Code::script, "hook '{}' cannot take the place of '{}': checkpoints know a hook's state by its name",
           hook->name(), name);
  if (const config::Node state = (*old)->state(); !state.is_null()) {
    hook->load(state);
  }
  *old = std::move(hook);
  sort();
}

}  // namespace kf
