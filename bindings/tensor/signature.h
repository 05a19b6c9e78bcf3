#pragma once
// One schema of the dispatcher in the terms that matching Lua values needs.

#include <ATen/core/dispatch/Dispatcher.h>

#include <memory>
#include <string>
#include <vector>

namespace kf::lua {

/// What an argument or a result is; lists of it have `list`.
enum class Kind : std::uint8_t {
  tensor,
  integer,
  reduction,  // of losses: 0, 1, 2, or "none", "mean", "sum"
  real,
  boolean,
  scalar,
  text,
  dimname,
  dtype,
  layout,
  memory_format,
  device,
  generator,
  unknown
};

struct ArgumentType {
  Kind kind = Kind::unknown;
  bool list = false;
  bool optional = false;           // nil is a value of it
  bool optional_elements = false;  // Tensor?[]
  int size = 0;                    // int[2]: one number stands for all; 0 where it does not
};

struct Slot {
  std::string name;
  ArgumentType type;
  bool keyword_only = false;
  bool out = false;
  bool fallback = false;  // it has a default
};

/// One overload.
struct Signature {
  c10::OperatorHandle handle;
  std::string name;      // "softmax"
  std::string overload;  // "int"
  std::vector<Slot> parameters;
  std::vector<ArgumentType> results;
  std::vector<bool> fresh;  // by result: it has memory of its own
  int positional = 0;       // how many may be given by place
  int first_list = -1;      // the parameter whose items may be given one by one; -1 for none
  std::string missing;      // why it cannot be called from Lua; empty when it can

  explicit Signature(c10::OperatorHandle op);
  /// "softmax.int(self: Tensor, dim: int, dtype: dtype = nil) -> Tensor"
  std::string text() const;
};

ArgumentType argument_type(const c10::TypePtr& type, const std::optional<std::int32_t>& size);
/// "Tensor", "int[2]", "dtype?".
std::string type_text(const ArgumentType& type);

}  // namespace kf::lua
