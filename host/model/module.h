#pragma once
// A tree of layers that own parameters. Names are joined by dots on the way down and equal the peer's state-dict names.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/parameter.h"

namespace kf {

class Module {
 public:
  Module() = default;
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// Every parameter below, depth first in order of registration, each once, its `name` filled in.
  ParameterList parameters();
  /// Names that stand for a parameter listed under another name: "output_head.proj.weight" of tied embeddings.
  std::vector<std::pair<std::string, std::string>> aliases();  // alias, listed name

  /// This module's own parameters by their names, without those of its children.
  const std::vector<std::pair<std::string, ParameterPtr>>& own_parameters() const { return parameters_; }
  /// Every parameter below by its name from here. Unlike `parameters` it leaves `Parameter::name`, the name from the root, alone.
  std::vector<std::pair<std::string, ParameterPtr>> named_parameters() const;

  /// Whether it hands its results through `observed` (observe.h): blocks, attentions, feed-forward layers, norms, linear layers.
  virtual bool observable() const { return false; }

  /// Training or evaluation, for the whole tree.
  void train(bool on = true);
  bool training() const { return training_; }

  /// The weights below that are gathered and reduced together; null where that is a matter of a module above, and on one rank.
  const std::shared_ptr<WeightUnit>& unit() const { return unit_; }
  void set_unit(std::shared_ptr<WeightUnit> unit) { unit_ = std::move(unit); }

  /// Direct children by name, in order of registration.
  const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& children() const { return children_; }

 protected:
  /// Declares a weight of this module; it has no storage until `Model::materialize`.
  ParameterPtr add_parameter(std::string name, std::vector<std::int64_t> shape, Init init, Role role = Role::hidden);
  /// A weight that another module owns (tied embeddings).
  void share_parameter(std::string name, ParameterPtr parameter);
  /// An empty name adds nothing to the names below it.
  template <class T>
  std::shared_ptr<T> add_child(std::string name, std::shared_ptr<T> child) {
    children_.emplace_back(std::move(name), child);
    return child;
  }

 private:
  template <class Visit>
  void walk(const std::string& prefix, Visit&& visit) const;

  std::vector<std::pair<std::string, ParameterPtr>> parameters_;
  std::vector<std::pair<std::string, std::shared_ptr<Module>>> children_;
  std::shared_ptr<WeightUnit> unit_;
  bool training_ = true;
};

}  // namespace kf
