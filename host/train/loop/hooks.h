#pragma once
// The hooks of a run, called in order of registration.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "config/tree/node.h"
#include "train/loop/hook.h"

namespace kf {

class Hooks {
 public:
  /// Called by falling priority, then in this order.
  explicit Hooks(std::vector<std::unique_ptr<Hook>> hooks = {});

  /// Calls those that want the event. What one throws ends the run.
  void call(Event event, HookContext& context);
  /// Whether any hook listens: lets the caller skip what it would have to compute.
  bool wants(Event event, std::int64_t step) const;

  std::map<std::string, config::Node> state() const;
  /// Hooks without a stored state start fresh; stored states without a hook are named in the log.
  void load(const std::map<std::string, config::Node>& states);

  /// Between two steps: `hook` comes where the hook `name` was, and goes on from its state. That is loaded before anything changes, so what
  /// `load` throws leaves the old one in place. Throws Code::script where there is none, and for a hook of another name.
  void replace(const std::string& name, std::unique_ptr<Hook> hook);

 private:
  std::vector<std::unique_ptr<Hook>>::iterator find(const std::string& name);
  void sort();

  std::vector<std::unique_ptr<Hook>> hooks_;
};

}  // namespace kf
