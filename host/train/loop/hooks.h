#pragma once
// The hooks of a run, called in order of registration.

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "config/tree/node.h"
#include "train/loop/hook.h"

namespace kf {

class Hooks {
 public:
  /// Called by falling priority, then in this order: those of the job, then others that stay whatever becomes of these.
  explicit Hooks(std::vector<std::unique_ptr<Hook>> of_job = {}, std::vector<std::unique_ptr<Hook>> others = {});

  /// Calls those that want the event. What one throws ends the run.
  void call(Event event, HookContext& context);
  /// Whether any hook listens: lets the caller skip what it would have to compute.
  bool wants(Event event, std::int64_t step) const;

  std::map<std::string, config::Node> state() const;
  /// Hooks without a stored state start fresh; stored states without a hook are named in the log.
  void load(const std::map<std::string, config::Node>& states);

  /// Gives each of these the state of the job's hook with its name, if there is one: what `load` throws leaves the old ones in place.
  void hand_over(const std::vector<std::unique_ptr<Hook>>& fresh);
  /// Between two steps: these come where the job's hooks were, which go. (See `hand_over`.)
  void exchange(std::vector<std::unique_ptr<Hook>> fresh);

 private:
  std::vector<std::unique_ptr<Hook>>::iterator find(const std::string& name);
  void add(std::vector<std::unique_ptr<Hook>> hooks);

  std::vector<std::unique_ptr<Hook>> hooks_;
  std::set<const Hook*> others_;  // that are not the job's
};

}  // namespace kf
