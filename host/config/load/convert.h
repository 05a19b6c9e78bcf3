#pragma once
// From a node to exactly the type that its row declares. What does not fit becomes a problem; nothing is cut, rounded or guessed.

#include <optional>
#include <set>
#include <string>

#include "config/schema/report.h"
#include "config/schema/schema.h"

namespace kf::config {

/// Reads nodes by rows and collects what is wrong with them.
class Converter final : public Reading {
 public:
  Converter(const Catalog& catalog, Report& report) : catalog_(catalog), report_(report) {}

  /// The node in the row's type, checked against the row's bounds; nothing (and a problem) when it does not fit. `key` is the dotted name.
  std::optional<Node> convert(const Node& node, const Row& row, const std::string& key);

  /// Bounds, choices and registered names alone, of a converted node.
  bool check(const Node& node, const Row& row, const std::string& key);

  /// The known fields of a table, with defaults for those left out; unknown keys are problems.
  Table fields(const Table& table, const Origin& origin, const std::vector<Row>& rows, const std::string& key) override;

  /// Files a problem about the value of `key` and marks the key as unusable.
  void fault(const std::string& key, const Node& node, const std::string& words) override;
  void fault_at(const std::string& key, const Origin& origin, const std::string& message);

  /// Keys whose values cannot be used; rules over them are left out.
  const std::set<std::string>& broken() const { return broken_; }

 private:
  void give_up(const std::string& key) override;
  bool check_text(const Node& text, const Row& row, const std::string& key) override;

  const Catalog& catalog_;
  Report& report_;
  std::set<std::string> broken_;
};

/// "train.seq_len (4096)", or "4096" alone where the place already names the key.
std::string subject(const std::string& key, const Node& value, const Origin& origin);

}  // namespace kf::config
