#include "sweep/objective.h"

namespace kf::sweep {

std::string objective_name(Store& store) {
  const config::Node identity = store.attribute("definition");
  const config::Node* const name = identity.table() != nullptr ? identity.table()->find("objective") : nullptr;
  const auto* const text = name != nullptr ? std::get_if<std::string>(&name->value) : nullptr;
  return text == nullptr || *text == "function" ? "objective" : *text;
}

}  // namespace kf::sweep
