#pragma once
// What the factory that runs now builds for: kf.nn takes defaults (init_std, n_layers, shared rotary tables) from it.

#include <utility>

#include "model/layer/place.h"
#include "registry/registries.h"

namespace kf::lua {

class BuildScope {
 public:
  BuildScope(const PartArgs& args, const Place& place) : args_(args), place_(place), before_(std::exchange(current_, this)) {}
  ~BuildScope() { current_ = before_; }
  BuildScope(const BuildScope&) = delete;
  BuildScope& operator=(const BuildScope&) = delete;

  /// Null outside of factories, where the settings' defaults hold.
  static const BuildScope* current() { return current_; }
  const config::Config& config() const { return args_.config; }
  const Registries& registries() const { return args_.registries; }
  const World* world() const { return args_.world; }
  const Place& place() const { return place_; }
  /// A number for each thing of this build that draws: the first, the second, ...
  std::int64_t next_number() const { return numbered_++; }

 private:
  static inline thread_local BuildScope* current_ = nullptr;

  const PartArgs& args_;
  const Place& place_;
  BuildScope* before_;
  mutable std::int64_t numbered_ = 0;
};

}  // namespace kf::lua
