#pragma once
// The rows of fields.def as data: types, defaults, checks and docs, and the way from a row to its member of Config.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/schema/config.h"
#include "config/tree/node.h"

namespace kf::config {

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

/// What a value is, whatever its C++ type.
enum class Type { boolean, integer, real, duration, durations, text, pair, reals, integers, texts, list, numbers, record, records };

/// The word for a type in messages and docs: "integer", "list of strings".
std::string type_name(Type type);

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

/// One section of the settings.
struct Section {
  std::string name;
  std::string doc;
};

/// In the order of fields.def.
const std::vector<Section>& sections();
const std::vector<Row>& rows();
/// Null when there is none.
const Row* find_row(std::string_view key);
bool is_section(std::string_view name);

/// The rows that a part declares for its own table, as the schema's.
std::vector<Row> part_rows(const PartInfo& part);

}  // namespace kf::config
