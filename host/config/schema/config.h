#pragma once
// The job as plain structs, expanded from fields.def: config.optimizer.lr is a double.

#include <map>
#include <string>

#include "config/schema/part.h"
#include "config/schema/types.h"

namespace kf::config {

#define RECORD(Type, doc) struct Type {
#define TABLE(Type, member, doc) struct Type {
#define FIELD(type, name, fallback, check, doc) type name = fallback;
#define END(Type)                               \
  bool operator==(const Type&) const = default; \
  }                                             \
  ;
#include "config/schema/fields.def"

/// What the user wrote: optionals stay optional, -1 stays -1. `Plan` (plan.h) is what it resolved to.
struct Config {
#define KF_NO_RECORDS
#define TABLE(Type, member, doc) Type member;
#define TOP(type, name, fallback, check, doc) type name = fallback;
#include "config/schema/fields.def"

  /// The checked own table of each part that is chosen or has one, defaults filled in, by "kind.name": parts["scheduler.inverse_sqrt"].
  std::map<std::string, PartOptions> parts;
};

}  // namespace kf::config
