#pragma once
// Calls of operators with plain arguments: which overload they mean is found once for each combination of types, and the common shapes of
// schemas are called unboxed.

#include <lua.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bindings/tensor/arguments.h"
#include "bindings/tensor/plain_call.h"
#include "bindings/tensor/signature.h"

namespace kf::lua {

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
