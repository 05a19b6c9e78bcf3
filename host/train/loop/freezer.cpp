#include "train/loop/freezer.h"

#include <algorithm>

#include "core/error.h"
#include "core/name_pattern.h"

namespace kf {
namespace {

bool has(const std::set<std::string>& names, const std::string& name) { return names.count(name) > 0; }

}  // namespace

std::vector<std::string> Freezer::matching(const std::vector<std::string>& patterns, const std::string& key) const {
  std::vector<std::string> names;
  for (const ParameterPtr& parameter : parameters_) {
    names.push_back(parameter->name);
  }
  const std::vector<bool> matches = match_names(patterns, names, key);
  std::vector<std::string> out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (matches[i]) {
      out.push_back(names[i]);
    }
  }
  return out;
}

bool Freezer::any_trains(const std::set<std::string>& asked, const std::set<std::string>& phase) const {
  return std::any_of(parameters_.begin(), parameters_.end(),
                     [&](const ParameterPtr& p) { return p->trainable && !has(asked, p->name) && !has(phase, p->name); });
}

void Freezer::apply(const std::set<std::string>& asked, const std::set<std::string>& phase) {
  KF_CHECK(any_trains(asked, phase), Code::config, "every weight would be frozen, so nothing could be learned");
  asked_ = asked;
  phase_ = phase;
  for (const ParameterPtr& p : parameters_) {
    const bool trains = p->trainable && !has(asked_, p->name) && !has(phase_, p->name);
    if (p->trains() != trains) {
      p->set_trains(trains);
      p->clear_gradient();
    }
  }
}

void Freezer::check(const std::vector<std::string>& patterns, bool frozen, const std::string& key) const {
  const std::vector<std::string> names = matching(patterns, key);
  if (frozen) {
    return;
  }
  for (const ParameterPtr& p : parameters_) {
    const bool named = std::find(names.begin(), names.end(), p->name) != names.end();
    KF_CHECK(!named || p->trainable, Code::config, "{}: {} is frozen for the whole run (train.frozen, train.trainable)", key, p->name);
  }
}

void Freezer::set(const std::vector<Controls::Freezing>& changes) {
  if (!changes.empty()) {
    apply(after(changes), phase_);
  }
}

/// What hooks have frozen behind these changes.
std::set<std::string> Freezer::after(const std::vector<Controls::Freezing>& changes) const {
  std::set<std::string> asked = asked_;
  for (const Controls::Freezing& change : changes) {
    const std::string key = change.frozen ? "ctx:freeze" : "ctx:unfreeze";
    check({change.pattern}, change.frozen, key);
    for (const std::string& name : matching({change.pattern}, key)) {
      change.frozen ? void(asked.insert(name)) : void(asked.erase(name));
    }
  }
  KF_CHECK(changes.empty() || any_trains(asked, phase_), Code::script,
           "{}ctx:{}(\"{}\"): every weight would be frozen, so nothing could be learned; ctx:unfreeze in the same callback lets some train",
           changes.back().asked_at, changes.back().frozen ? "freeze" : "unfreeze", changes.back().pattern);
  return asked;
}

void Freezer::set_phase(const std::vector<std::string>& patterns) {
  const std::vector<std::string> names = patterns.empty() ? std::vector<std::string>() : matching(patterns, "phases.freeze");
  apply(asked_, {names.begin(), names.end()});
}

void Freezer::restore(const std::vector<std::string>& names) { apply({names.begin(), names.end()}, phase_); }

}  // namespace kf
