#include "sweep/definition.h"

#include <algorithm>
#include <array>

#include "config/load/cli.h"
#include "config/load/convert.h"
#include "config/load/names.h"
#include "config/schema/schema.h"
#include "config/tree/json.h"
#include "core/text.h"

namespace kf::sweep {
namespace {

using config::Node;
using config::Problem;
using config::Row;
using config::Table;

std::string rule_text(const Entry& entry);

std::string option_text(const Option& option) {
  if (!option.group) {
    return config::to_json(option.value, config::JsonStyle::exact);
  }
  std::vector<std::string> parts;
  for (const Entry& entry : option.entries) {
    parts.push_back(entry.name + " = " + rule_text(entry));
  }
  return "{ " + join(parts, ", ") + " }";
}

std::string rule_text(const Entry& entry) {
  if (const auto* constant = std::get_if<Node>(&entry.rule)) {
    return config::to_json(*constant, config::JsonStyle::exact);
  }
  if (const auto* distribution = std::get_if<Distribution>(&entry.rule)) {
    return distribution->describe();
  }
  if (const auto* choice = std::get_if<std::shared_ptr<const Choice>>(&entry.rule)) {
    std::vector<std::string> parts;
    for (const Option& option : (*choice)->options) {
      parts.push_back(option_text(option));
    }
    return "choice(" + join(parts, ", ") + ")";
  }
  return "function";
}

/// The rows that a dotted key can name: the settings, and the own fields of registered parts.
class Keys {
 public:
  explicit Keys(const config::Catalog& catalog) {
    for (const auto& [kind, parts] : catalog) {
      for (const config::PartInfo& part : parts) {
        for (const Row& row : part.fields) {
          parts_.emplace_back(kind + "." + part.name + "." + row.name, row);
        }
      }
    }
  }

  const Row* find(const std::string& key) const {
    if (const Row* row = config::find_row(key)) {
      return row;
    }
    const auto found = std::find_if(parts_.begin(), parts_.end(), [&key](const auto& pair) { return pair.first == key; });
    return found == parts_.end() ? nullptr : &found->second;
  }

  std::string unknown(const std::string& key) const {
    std::vector<std::string> names;
    for (const Row& row : config::rows()) {
      names.push_back(row.key());
    }
    for (const auto& [name, row] : parts_) {
      names.push_back(name);
    }
    // kind = kf.choice({ { ["model.dim"] = ... } }): a name before settings of other sections
    if (const std::size_t dot = key.find('.'); dot != std::string::npos && find(key.substr(dot + 1)) != nullptr) {
      return format(
          "space: unknown setting '{}'; a choice among settings of several sections stands in the space without a name: kf.choice({...})",
          key);
    }
    // The right key under the wrong section, or without one, is likelier than a slip of the whole.
    const std::string last = key.substr(key.rfind('.') + 1);
    std::string near = nearest(key, names);
    for (const std::string& name : names) {
      if (near.empty() && name.ends_with("." + last)) {
        near = name;
      }
    }
    return format("space: unknown setting '{}'{}", key,
                  near.empty() ? "; `kf-host config keys` lists all" : "; did you mean '" + near + "'?");
  }

 private:
  std::vector<std::pair<std::string, Row>> parts_;
};

class SpaceCheck {
 public:
  SpaceCheck(const config::Catalog& catalog, Method method) : catalog_(catalog), keys_(catalog), grid_(method == Method::grid) {}

  void entries(const std::vector<Entry>& list) {
    for (const Entry& entry : list) {
      check(entry);
    }
  }

  void value(const std::string& key, const Node& node, const config::Origin& origin) {
    const Row* row = row_of(key, origin);
    if (row == nullptr) {
      return;
    }
    Node placed = node;
    placed.origin = placed.key_origin = origin;
    config::Report report;
    config::Converter(catalog_, report).convert(placed, *row, key);
    for (Problem& problem : report.problems) {
      problem.message = "space: " + problem.message + (node.array() != nullptr ? "; kf.choice({ ... }) tries values one by one" : "");
      problems_.push_back(std::move(problem));
    }
  }

  std::vector<Problem> take() { return std::move(problems_); }
  const std::vector<std::string>& seen() const { return seen_; }

 private:
  const Row* row_of(const std::string& key, const config::Origin& origin) {
    seen_.push_back(key);
    const Row* row = keys_.find(key);
    if (row == nullptr) {
      problems_.push_back({origin, keys_.unknown(key)});
    }
    return row;
  }

  void check(const Entry& entry) {
    if (const auto* constant = std::get_if<Node>(&entry.rule)) {
      value(entry.key, *constant, entry.origin);
    } else if (const auto* distribution = std::get_if<Distribution>(&entry.rule)) {
      numbers(entry, *distribution);
    } else if (const auto* choice = std::get_if<std::shared_ptr<const Choice>>(&entry.rule)) {
      for (const Option& option : (*choice)->options) {
        if (!option.group) {
          value(entry.key, option.value, entry.origin);
        } else {
          entries(option.entries);
        }
      }
    } else {
      row_of(entry.key, entry.origin);
    }
  }

  /// The ends, and a number in between: a setting that takes whole numbers takes the ends of kf.uniform(32, 64) alone.
  void numbers(const Entry& entry, const Distribution& distribution) {
    if (grid_ && !distribution.count()) {
      problems_.push_back({entry.origin, format("space: a grid needs values to count, '{}' is {}; use kf.choice({ ... }), kf.quniform(low, "
                                                "high, step), or method = \"random\"",
                                                entry.name, distribution.describe())});
      return;
    }
    const double between = distribution.nearest(distribution.low + 0.618 * (distribution.high - distribution.low));
    const std::size_t before = problems_.size();
    for (const double number : {distribution.low, distribution.high, between}) {
      if (problems_.size() == before) {
        value(entry.key, distribution.value(number), entry.origin);
      }
    }
  }

  const config::Catalog& catalog_;
  Keys keys_;
  bool grid_;
  std::vector<Problem> problems_;
  std::vector<std::string> seen_;
};

/// "--optimizer.lr=1" as "optimizer.lr"; "" for what is no option.
std::string override_key(const std::string& argument) {
  return argument.starts_with("--") ? argument.substr(0, argument.find('=')).substr(2) : "";
}

void refuse_repeated(std::vector<Problem>& problems) {
  std::vector<Problem> out;
  for (Problem& problem : problems) {
    if (std::none_of(out.begin(), out.end(), [&problem](const Problem& other) { return other.message == problem.message; })) {
      out.push_back(std::move(problem));
    }
  }
  problems = std::move(out);
}

}  // namespace

std::string method_name(Method method) {
  constexpr std::array<const char*, 6> names{"grid", "random", "list", "tpe", "asha", "function"};
  return names.at(static_cast<std::size_t>(method));
}

Table identity(const Definition& definition) {
  Table space;
  for (const Entry& entry : definition.space) {
    space[entry.name] = Node(rule_text(entry));
  }
  if (definition.method == Method::list) {
    config::Array rows;
    for (const Table& row : definition.list) {
      rows.emplace_back(Node(config::to_json(Node(row), config::JsonStyle::exact)));
    }
    space["list"] = Node(std::move(rows));
  }
  Table out;
  out["space"] = Node(std::move(space));
  out["method"] = Node(method_name(definition.method));
  out["seed"] = Node(static_cast<std::int64_t>(definition.seed));
  out["objective"] = Node(definition.objective);
  out["direction"] = Node(std::string(definition.maximise ? "max" : "min"));
  return out;
}

std::string difference(const Table& before, const Table& now) {
  std::vector<std::string> out;
  const auto compare = [&out](const std::string& name, const Node* was, const Node* is) {
    if ((was == nullptr) != (is == nullptr) || (was != nullptr && !(*was == *is))) {
      out.push_back(format("{}: {} then, {} now", name, was != nullptr ? config::brief(*was) : "nothing",
                           is != nullptr ? config::brief(*is) : "nothing"));
    }
  };
  for (const auto& [key, node] : now) {
    const Node* was = before.find(key);
    if (node.table() == nullptr || was == nullptr || was->table() == nullptr) {
      compare(key, was, &node);
      continue;
    }
    for (const auto& [name, rule] : *node.table()) {
      compare(name, was->table()->find(name), &rule);
    }
    for (const auto& [name, rule] : *was->table()) {
      if (node.table()->find(name) == nullptr) {
        compare(name, &rule, nullptr);
      }
    }
  }
  return join(out, "; ");
}

std::vector<Problem> check_space(const Definition& definition, const config::Catalog& catalog, const std::vector<std::string>& overrides) {
  SpaceCheck check(catalog, definition.method);
  check.entries(definition.space);
  for (const Table& row : definition.list) {
    for (const auto& [key, node] : row) {
      check.value(key, node, node.origin);
    }
  }
  std::vector<Problem> problems = check.take();
  for (const std::string& argument : overrides) {
    const std::string key = override_key(argument);
    if (std::find(check.seen().begin(), check.seen().end(), key) != check.seen().end()) {
      config::Origin origin;
      origin.kind = config::Origin::Kind::cli;
      origin.file = "--" + key;
      problems.push_back({origin, format("{} is in the space of the sweep; the option would win over every trial's own value", key)});
    }
  }
  refuse_repeated(problems);
  return problems;
}

void set_at(Table& tree, std::string_view key, Node value) {
  const std::size_t dot = key.find('.');
  if (dot == std::string_view::npos) {
    tree[key] = std::move(value);
    return;
  }
  Node& child = tree[key.substr(0, dot)];
  if (child.table() == nullptr) {
    child = Node(Table(), value.origin);
    child.key_origin = value.key_origin;
  }
  set_at(*child.table(), key.substr(dot + 1), std::move(value));
}

}  // namespace kf::sweep
