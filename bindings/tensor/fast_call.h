#pragma once
// Calls of operators with plain arguments: which overload they mean is found once for each combination of types, and the common shapes of
// schemas are called unboxed.

#include <ATen/core/Tensor.h>
#include <lua.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bindings/tensor/arguments.h"
#include "bindings/tensor/signature.h"

namespace kf::lua {

/// A value that says what it is by its type alone.
struct PlainValue {
  enum class Code : std::uint8_t { nil = 1, boolean, integer, real, tensor, integers };
  Code code = Code::nil;
  bool flag = false;
  const at::Tensor* tensor = nullptr;
  std::int64_t integer = 0;
  double number = 0;
};

/// The values of a call, when all are plain: tensors, numbers, booleans, nil, and one short list of integers at most. A last table of
/// keywords adds its values, in the order in which Lua walks it.
struct PlainCall {
  static constexpr int kMost = 6;
  static constexpr int kMostItems = 8;
  static constexpr std::uint32_t kOther = 0;  // the call is not plain

  std::array<PlainValue, kMost> values;
  int count = 0;                                 // by place
  int keywords = 0;                              // behind them
  std::array<std::string_view, kMost> names{};   // of the keywords; they live as long as the table
  std::array<std::int64_t, kMostItems> items{};  // of the list
  int item_count = 0;

  /// Reads the values from stack index `first` on; their types as a key, or kOther. Throws for tensors that may not be used.
  std::uint32_t read(lua_State* L, int first);

 private:
  bool read_value(lua_State* L, int index, PlainValue& value);
  bool read_keywords(lua_State* L, int index, std::uint32_t& key);
  bool read_items(lua_State* L, int index);
};

/// An overload called with arguments of fixed types.
class FastOperator {
 public:
  virtual ~FastOperator() = default;
  /// Pushes the results, counts them. `first`: stack index of the first argument, pushed again where an operator returns it.
  virtual int run(lua_State* L, const PlainCall& call, int first) const = 0;
};

/// The unboxed call of `signature` with the values of `call` by `fit`; null where its schema has none of the common shapes.
std::unique_ptr<FastOperator> make_fast(const Signature& signature, const PlainCall& call, const Fit& fit);

/// What was chosen for calls of one key and the same keywords.
struct CallPlan {
  std::uint32_t key = PlainCall::kOther;
  std::vector<std::string> names;  // of the keywords, in order
  const Signature* signature = nullptr;
  Fit fit;
  std::unique_ptr<FastOperator> fast;  // null: boxed
};

/// The plans of an operator: few, so they are searched one after the other.
class CallPlans {
 public:
  const CallPlan* find(std::uint32_t key, const PlainCall& call) const {
    for (const CallPlan& plan : plans_) {
      if (plan.key == key && std::equal(plan.names.begin(), plan.names.end(), call.names.begin())) {
        return &plan;
      }
    }
    return nullptr;
  }
  void add(CallPlan plan);

 private:
  std::vector<CallPlan> plans_;
};

}  // namespace kf::lua
