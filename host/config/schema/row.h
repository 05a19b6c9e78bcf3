#pragma once
// A field, whoever declares it: fields.def, a native part, a script.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/schema/types.h"
#include "config/tree/node.h"

namespace kf::config {

struct Config;

/// What values a row takes, with words for people. Numbers: bounds; text: a list or a registry's names.
struct Check {
  std::optional<double> min;
  std::optional<double> max;
  bool above_min = false;     // min itself is out
  bool below_max = false;     // max itself is out
  bool infinite = false;      // inf is fine
  bool automatic = false;     // -1 stands for "choose"
  bool experts_only = false;  // only where model.num_experts > 0
  std::vector<std::string> choices;
  std::string kind;    // registry whose names are allowed
  std::string reason;  // why, or what to do instead; ends the words

  Check with_experts() const;
  Check or_infinite() const;
  Check or_auto() const;
  Check because(std::string why) const;

  bool holds(double value) const;
  /// "must be positive", "must be one of a, b", "must be a registered optimizer"; empty where anything goes.
  std::string words() const;
};

Check any();
Check above(double bound);
Check at_least(double bound);
/// [low, high]
Check between(double low, double high);
/// (low, high)
Check inside(double low, double high);
/// [low, high)
Check from_below(double low, double high);
Check one_of(std::vector<std::string> choices);
Check registered(std::string kind);
inline Check each_at_least(double bound) { return at_least(bound); }
inline Check each_from_below(double low, double high) { return from_below(low, high); }

/// One field, as every surface sees it.
struct Row {
  std::string section;  // "" for keys outside the sections
  std::string name;
  Type type = Type::text;
  bool optional = false;
  bool required = false;  // must be given; only fields of parts
  Node fallback;          // the default; null where unset
  Check check;
  std::string doc;
  std::vector<Row> fields;  // of record and records

  // Null in fields of records and of parts.
  Node (*get)(const Config&) = nullptr;
  void (*set)(Config&, const Node&) = nullptr;  // the node has exactly the row's type

  /// "train.seq_len", or "hooks".
  std::string key() const { return section.empty() ? name : section + "." + name; }
};

template <class T>
inline constexpr bool kIsMaybe = false;
template <class T>
inline constexpr bool kIsMaybe<Maybe<T>> = true;

/// The row of a value of type T; the fields of a record are the caller's to add.
template <class T>
Row value_row(std::string name, const T& fallback, Check check, std::string doc) {
  Row row;
  row.name = std::move(name);
  row.type = kTypeOf<T>;
  row.optional = kIsMaybe<T>;
  row.fallback = to_node(fallback);
  row.check = std::move(check);
  row.doc = std::move(doc);
  return row;
}

}  // namespace kf::config
