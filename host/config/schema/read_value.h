#pragma once
// One value from a node, however it was written. Nothing is cut, rounded or guessed: what does not fit is told in words.

#include <optional>
#include <string>

#include "config/tree/node.h"

namespace kf::config {

/// A value, or what is wrong with it: "is not an integer".
struct ReadValue {
  std::optional<Node> node;
  std::string words;
};

ReadValue read_boolean(const Node& node);
ReadValue read_integer(const Node& node);
ReadValue read_real(const Node& node);
/// Steps or a share of the schedule.
ReadValue read_duration(const Node& node);
ReadValue read_text(const Node& node);
/// What it looks like: a number, else text.
ReadValue read_any(const Node& node);

/// The text of a node of the command line or a recipe, which may mean something else; null where it is none.
const std::string* loose_text(const Node& node);

}  // namespace kf::config
