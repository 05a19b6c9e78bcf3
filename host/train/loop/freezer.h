#pragma once
// Which weights train at the moment. A frozen weight gets no gradient, so no optimizer moves or decays it; its moments stay as they are.

#include <set>
#include <string>
#include <vector>

#include "model/parameter.h"
#include "train/loop/controls.h"

namespace kf {

class Freezer {
 public:
  explicit Freezer(ParameterList parameters) : parameters_(std::move(parameters)) {}

  /// What hooks ask for, in order, kept until they ask otherwise. Throws Code::config for a pattern that matches nothing and for thawing
  /// what the job froze for the whole run, Code::script when nothing would train after all of them.
  void set(const std::vector<Controls::Freezing>& changes);
  /// Throws what `set` would.
  void check(const std::vector<Controls::Freezing>& changes) const { after(changes); }
  /// What the running phase freezes, besides.
  void set_phase(const std::vector<std::string>& patterns);
  /// Throws as `set` would.
  void check(const std::vector<std::string>& patterns, bool frozen, const std::string& key) const;

  /// Names that hooks froze.
  std::vector<std::string> frozen() const { return {asked_.begin(), asked_.end()}; }
  void restore(const std::vector<std::string>& names);

 private:
  std::set<std::string> after(const std::vector<Controls::Freezing>& changes) const;
  std::vector<std::string> matching(const std::vector<std::string>& patterns, const std::string& key) const;
  bool any_trains(const std::set<std::string>& asked, const std::set<std::string>& phase) const;
  void apply(const std::set<std::string>& asked, const std::set<std::string>& phase);

  ParameterList parameters_;
  std::set<std::string> asked_;
  std::set<std::string> phase_;
};

}  // namespace kf
