#include "registry/part_states.h"

#include <algorithm>
#include <utility>

#include "core/log.h"
#include "core/text.h"

namespace kf {

PartStates::Handle PartStates::add(const std::string& name, Kept kept) {
  std::erase_if(parts_, [](const std::weak_ptr<const Kept>& one) { return one.expired(); });
  const auto taken = [&](const std::string& key) {
    return std::any_of(parts_.begin(), parts_.end(), [&](const std::weak_ptr<const Kept>& one) { return one.lock()->key == key; });
  };
  kept.key = name;
  for (int number = 2; taken(kept.key); ++number) {
    kept.key = format("{}#{}", name, number);
  }
  Handle handle = std::make_shared<const Kept>(std::move(kept));
  parts_.emplace_back(handle);
  return handle;
}

std::map<std::string, config::Node> PartStates::state() const {
  std::map<std::string, config::Node> states;
  for (const std::weak_ptr<const Kept>& one : parts_) {
    if (const Handle part = one.lock()) {
      states[part->key] = part->state();
    }
  }
  return states;
}

void PartStates::load(const std::map<std::string, config::Node>& states) const { give(states, false); }

void PartStates::roll_back(const std::map<std::string, config::Node>& states) const {
  give(states, true);
  for (const std::weak_ptr<const Kept>& one : parts_) {
    if (const Handle part = one.lock(); part && states.count(part->key) == 0) {
      log::warn("the checkpoint is older than {}, whose state stays as it is", part->key);
    }
  }
}

void PartStates::give(const std::map<std::string, config::Node>& states, bool nulls) const {
  std::map<std::string, Handle> living;
  for (const std::weak_ptr<const Kept>& one : parts_) {
    if (const Handle part = one.lock()) {
      living[part->key] = part;
    }
  }
  for (const auto& [key, state] : states) {
    if (const auto part = living.find(key); part != living.end()) {
      if (nulls || !state.is_null()) {
        part->second->load(state);
      }
    } else if (!state.is_null()) {
      log::warn("the checkpoint holds the state of {}, which this job does not have", key);
    }
  }
}

}  // namespace kf
