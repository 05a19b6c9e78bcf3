#pragma once
// Values of the store's columns, as Optuna has them.

#include <cstdint>
#include <string>

#include "config/tree/node.h"
#include "sweep/sqlite.h"

namespace kf::sweep {

std::int64_t integer(const SqlValue& value);
/// "" for null.
std::string text(const SqlValue& value);
double real(const SqlValue& value);

/// Optuna's columns for a number that SQL may lack: value and type.
struct Stored {
  SqlValue value;
  std::string type;
};
Stored stored(double number);
double from_stored(const SqlValue& value, const std::string& type);

/// Attributes that another program wrote may hold JSON that our reader refuses (NaN); they are kept as text.
config::Node json(const std::string& value);
std::string exact_json(const config::Node& value);

}  // namespace kf::sweep
