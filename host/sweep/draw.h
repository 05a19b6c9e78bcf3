#pragma once
// The space of a sweep, and how one trial is drawn from it.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "config/tree/node.h"
#include "sweep/distribution.h"

namespace kf::sweep {

struct Entry;
struct Choice;

/// A part of the space that depends on what was drawn before it: a value, a distribution, or nothing for this trial. `values` holds the
/// drawn settings by dotted key.
using Computed = std::function<std::optional<Entry>(const config::Table& values)>;

/// One parameter, or one choice between groups of them.
struct Entry {
  std::string name;       // of the parameter in the store: "optimizer.lr", "choice 1"
  std::string key;        // the setting that it gives a value; empty for a choice between groups of settings
  config::Origin origin;  // its place in the script
  std::variant<config::Node, Distribution, std::shared_ptr<const Choice>, Computed> rule;
};

/// One of the possibilities of a choice: a value, or a group of further entries.
struct Option {
  config::Node value;
  bool group = false;
  std::vector<Entry> entries;  // of a group
};

struct Choice {
  Distribution labels;  // a choice with one entry an option
  std::vector<Option> options;
};

/// Gives the stored value of each parameter that is asked for, in the order of the space.
class Suggester {
 public:
  virtual ~Suggester() = default;
  virtual double draw(const std::string& name, const Distribution& distribution) = 0;
};

/// A trial before it runs.
struct Draw {
  std::vector<Parameter> parameters;
  config::Table values;  // dotted key -> setting, with origins in the script
};

/// Walks the space: entries in their order, the entries of the chosen group, functions last.
Draw draw(const std::vector<Entry>& space, Suggester& sampler);

}  // namespace kf::sweep
