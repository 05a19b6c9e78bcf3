#include "bindings/tensor/fast_call.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "bindings/tensor/tensor.h"

namespace kf::lua {
namespace {

using Code = PlainValue::Code;

constexpr std::size_t kMostPlans = 32;

/// A list of integers that lives as long as the call.
struct Integers {
  std::array<std::int64_t, PlainCall::kMostItems> items{};
  std::size_t count = 0;
  bool none = false;
  at::IntArrayRef view() const { return {items.data(), count}; }
};

/// Where an argument comes from.
struct Source {
  std::int16_t place = Fit::kDefault;
  bool spread = false;  // the values from `place` on are the list
  int size = 0;         // int[2]: one number stands for all
};

Integers integers_of(const PlainCall& call, const Source& source) {
  Integers out;
  const auto place = static_cast<std::size_t>(source.place);
  if (source.spread) {
    for (std::size_t i = place; i < static_cast<std::size_t>(call.count); ++i) {
      out.items[out.count++] = call.values[i].integer;
    }
  } else if (call.values[place].code == Code::integers) {
    out.count = static_cast<std::size_t>(call.item_count);
    out.items = call.items;
  } else if (call.values[place].code == Code::nil) {
    out.none = true;
  } else {
    out.count = static_cast<std::size_t>(source.size);
    out.items.fill(call.values[place].integer);
  }
  return out;
}

at::Scalar scalar_of(const PlainValue& value) {
  return value.code == Code::boolean   ? at::Scalar(value.flag)
         : value.code == Code::integer ? at::Scalar(value.integer)
                                       : at::Scalar(value.number);
}

/// How a parameter of C++ type T is read (`take`), what its default is (`fallback`), and how it is handed on (`pass`).
template <class T>
struct Argument;

template <>
struct Argument<const at::Tensor&> {
  static constexpr char kCode = 'T';
  using Held = const at::Tensor*;
  static Held take(const PlainCall& call, const Source& source) { return call.values[static_cast<std::size_t>(source.place)].tensor; }
  static Held fallback(const c10::IValue&) { return nullptr; }
  static const at::Tensor& pass(Held held) { return *held; }
};

template <>
struct Argument<at::Tensor&> : Argument<const at::Tensor&> {
  static constexpr char kCode = 'M';
  // The dispatcher wants what an operator changes as a non-const reference to the handle.
  static at::Tensor& pass(Held held) { return const_cast<at::Tensor&>(*held); }
};

template <>
struct Argument<const std::optional<at::Tensor>&> {
  static constexpr char kCode = 't';
  using Held = std::optional<at::Tensor>;
  static Held take(const PlainCall& call, const Source& source) {
    const PlainValue& value = call.values[static_cast<std::size_t>(source.place)];
    return value.code == Code::tensor ? Held(*value.tensor) : std::nullopt;
  }
  static Held fallback(const c10::IValue&) { return std::nullopt; }
  static const Held& pass(const Held& held) { return held; }
};

template <>
struct Argument<const at::Scalar&> {
  static constexpr char kCode = 'S';
  using Held = at::Scalar;
  static Held take(const PlainCall& call, const Source& source) { return scalar_of(call.values[static_cast<std::size_t>(source.place)]); }
  static Held fallback(const c10::IValue& value) { return value.isScalar() ? value.toScalar() : at::Scalar(); }
  static const Held& pass(const Held& held) { return held; }
};

template <>
struct Argument<const std::optional<at::Scalar>&> {
  static constexpr char kCode = 's';
  using Held = std::optional<at::Scalar>;
  static Held take(const PlainCall& call, const Source& source) {
    const PlainValue& value = call.values[static_cast<std::size_t>(source.place)];
    return value.code == Code::nil ? std::nullopt : Held(scalar_of(value));
  }
  static Held fallback(const c10::IValue&) { return std::nullopt; }
  static const Held& pass(const Held& held) { return held; }
};

template <>
struct Argument<std::int64_t> {
  static constexpr char kCode = 'i';
  using Held = std::int64_t;
  static Held take(const PlainCall& call, const Source& source) { return call.values[static_cast<std::size_t>(source.place)].integer; }
  static Held fallback(const c10::IValue& value) { return value.isInt() ? value.toInt() : 0; }
  static std::int64_t pass(Held held) { return held; }
};

template <>
struct Argument<c10::SymInt> : Argument<std::int64_t> {
  static constexpr char kCode = 'y';
  static c10::SymInt pass(Held held) { return held; }
};

template <>
struct Argument<double> {
  static constexpr char kCode = 'd';
  using Held = double;
  static Held take(const PlainCall& call, const Source& source) { return call.values[static_cast<std::size_t>(source.place)].number; }
  static Held fallback(const c10::IValue& value) {
    return value.isDouble() ? value.toDouble() : value.isInt() ? static_cast<double>(value.toInt()) : 0;
  }
  static double pass(Held held) { return held; }
};

template <>
struct Argument<bool> {
  static constexpr char kCode = 'b';
  using Held = bool;
  static Held take(const PlainCall& call, const Source& source) { return call.values[static_cast<std::size_t>(source.place)].flag; }
  static Held fallback(const c10::IValue& value) { return value.isBool() && value.toBool(); }
  static bool pass(Held held) { return held; }
};

/// Names of types are strings, so a plain call has the default alone, or nil.
template <>
struct Argument<std::optional<at::ScalarType>> {
  static constexpr char kCode = 'D';
  using Held = std::optional<at::ScalarType>;
  static Held take(const PlainCall&, const Source&) { return std::nullopt; }
  static Held fallback(const c10::IValue&) { return std::nullopt; }
  static Held pass(Held held) { return held; }
};

template <>
struct Argument<at::IntArrayRef> {
  static constexpr char kCode = 'L';
  using Held = Integers;
  static Held take(const PlainCall& call, const Source& source) { return integers_of(call, source); }
  static Held fallback(const c10::IValue& value) {
    Integers out;
    out.none = !value.isIntList();
    if (value.isIntList()) {
      for (const std::int64_t item : value.toIntVector()) {
        out.items.at(out.count++) = item;
      }
    }
    return out;
  }
  static at::IntArrayRef pass(const Held& held) { return held.view(); }
};

template <>
struct Argument<c10::SymIntArrayRef> : Argument<at::IntArrayRef> {
  static constexpr char kCode = 'Y';
  static c10::SymIntArrayRef pass(const Held& held) { return c10::fromIntArrayRefSlow(held.view()); }
};

template <>
struct Argument<at::OptionalIntArrayRef> : Argument<at::IntArrayRef> {
  static constexpr char kCode = 'O';
  static at::OptionalIntArrayRef pass(const Held& held) {
    return held.none ? at::OptionalIntArrayRef() : at::OptionalIntArrayRef(held.view());
  }
};

template <class R>
struct Result;
template <>
struct Result<at::Tensor> {
  static constexpr char kCode = 'T';
};
template <>
struct Result<at::Tensor&> {
  static constexpr char kCode = 'M';
};
template <>
struct Result<std::tuple<at::Tensor, at::Tensor>> {
  static constexpr char kCode = 'P';
};
template <>
struct Result<std::vector<at::Tensor>> {
  static constexpr char kCode = 'V';
};

/// Operators that change or return their first argument give back the userdata itself.
void push_one(lua_State* L, at::Tensor value, const PlainCall& call, int first, bool fresh) {
  if (call.count > 0 && call.values[0].code == Code::tensor && call.values[0].tensor->is_same(value)) {
    lua_pushvalue(L, first);
  } else {
    push_tensor(L, std::move(value), fresh ? Memory::fresh : Memory::shared);
  }
}

template <class F>
class Typed;

template <class R, class... A>
class Typed<R(A...)> final : public FastOperator {
 public:
  /// The parameters' types and the result's, as `code_of` writes them for a schema.
  static std::string code() { return std::string({Argument<A>::kCode..., '>', Result<R>::kCode}); }

  static std::unique_ptr<FastOperator> make(const Signature& signature, const std::vector<Source>& sources) {
    return std::unique_ptr<FastOperator>(new Typed(signature, sources, std::index_sequence_for<A...>()));
  }

  int run(lua_State* L, const PlainCall& call, int first) const override { return run(L, call, first, std::index_sequence_for<A...>()); }

 private:
  template <std::size_t... I>
  Typed(const Signature& signature, const std::vector<Source>& sources, std::index_sequence<I...>)
      : handle_(signature.handle.typed<R(A...)>()), sources_{sources[I]...}, fallbacks_(fallback<A>(signature, I)...) {
    for (std::size_t i = 0; i < signature.fresh.size() && i < fresh_.size(); ++i) {
      fresh_[i] = signature.fresh[i];
    }
  }

  template <class T>
  static typename Argument<T>::Held fallback(const Signature& signature, std::size_t parameter) {
    const auto& value = signature.handle.schema().arguments()[parameter].default_value();
    return Argument<T>::fallback(value ? *value : c10::IValue());
  }

  template <class T, std::size_t I>
  typename Argument<T>::Held take(const PlainCall& call) const {
    return sources_[I].place == Fit::kDefault ? std::get<I>(fallbacks_) : Argument<T>::take(call, sources_[I]);
  }

  template <std::size_t... I>
  int run(lua_State* L, const PlainCall& call, int first, std::index_sequence<I...>) const {
    const std::tuple<typename Argument<A>::Held...> held(take<A, I>(call)...);
    if constexpr (std::is_same_v<R, std::tuple<at::Tensor, at::Tensor>>) {
      auto [a, b] = handle_.call(Argument<A>::pass(std::get<I>(held))...);
      push_one(L, std::move(a), call, first, fresh_[0]);
      push_one(L, std::move(b), call, first, fresh_[1]);
      return 2;
    } else if constexpr (std::is_same_v<R, std::vector<at::Tensor>>) {
      std::vector<at::Tensor> list = handle_.call(Argument<A>::pass(std::get<I>(held))...);
      lua_createtable(L, static_cast<int>(list.size()), 0);
      for (std::size_t i = 0; i < list.size(); ++i) {
        push_tensor(L, std::move(list[i]), fresh_[0] ? Memory::fresh : Memory::shared);
        lua_rawseti(L, -2, static_cast<int>(i + 1));
      }
      return 1;
    } else {
      push_one(L, handle_.call(Argument<A>::pass(std::get<I>(held))...), call, first, fresh_[0]);
      return 1;
    }
  }

  c10::TypedOperatorHandle<R(A...)> handle_;
  std::array<Source, sizeof...(A)> sources_;
  std::tuple<typename Argument<A>::Held...> fallbacks_;
  std::array<bool, 2> fresh_{};
};

/// The code of a parameter of the schema, as `Argument` has it; '?' where no plain call reaches it.
char code_of(const c10::Argument& argument) {
  const bool changed = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
  c10::TypePtr type = argument.real_type();
  const bool optional = type->kind() == c10::TypeKind::OptionalType;
  if (optional) {
    type = type->castRaw<c10::OptionalType>()->getElementType();
  }
  if (type->kind() == c10::TypeKind::ListType) {
    const c10::TypeKind item = type->castRaw<c10::ListType>()->getElementType()->kind();
    if (item == c10::TypeKind::IntType) {
      return optional ? 'O' : 'L';
    }
    return item == c10::TypeKind::SymIntType && !optional ? 'Y' : '?';
  }
  switch (type->kind()) {
    case c10::TypeKind::TensorType: return optional ? 't' : changed ? 'M' : 'T';
    case c10::TypeKind::NumberType: return optional ? 's' : 'S';
    case c10::TypeKind::IntType: return optional ? '?' : 'i';
    case c10::TypeKind::SymIntType: return optional ? '?' : 'y';
    case c10::TypeKind::FloatType: return optional ? '?' : 'd';
    case c10::TypeKind::BoolType: return optional ? '?' : 'b';
    case c10::TypeKind::ScalarTypeType: return optional ? 'D' : '?';
    default: return '?';
  }
}

std::string code_of(const c10::FunctionSchema& schema) {
  std::string code;
  for (const c10::Argument& argument : schema.arguments()) {
    code += code_of(argument);
  }
  code += '>';
  const auto& results = schema.returns();
  const auto is_tensor = [](const c10::Argument& r) { return r.type()->kind() == c10::TypeKind::TensorType; };
  if (results.size() == 2 && is_tensor(results[0]) && is_tensor(results[1]) && results[0].alias_info() == nullptr) {
    return code + 'P';
  }
  if (results.size() != 1) {
    return code + '?';
  }
  if (is_tensor(results[0])) {
    return code + (results[0].alias_info() != nullptr && results[0].alias_info()->isWrite() ? 'M' : 'T');
  }
  const bool list = results[0].type()->kind() == c10::TypeKind::ListType &&
                    results[0].type()->castRaw<c10::ListType>()->getElementType()->kind() == c10::TypeKind::TensorType;
  return code + (list ? 'V' : '?');
}

using Make = std::unique_ptr<FastOperator> (*)(const Signature&, const std::vector<Source>&);

using T = const at::Tensor&;
using M = at::Tensor&;
using S = const at::Scalar&;
using Int = std::int64_t;
using Sym = c10::SymInt;
using Ints = at::IntArrayRef;
using Syms = c10::SymIntArrayRef;
using Dims = at::OptionalIntArrayRef;
using Type = std::optional<at::ScalarType>;
using OptT = const std::optional<at::Tensor>&;
using OptS = const std::optional<at::Scalar>&;
using Out = at::Tensor;
using Two = std::tuple<at::Tensor, at::Tensor>;
using Many = std::vector<at::Tensor>;

template <class... F>
const std::vector<std::pair<std::string, Make>>& table_of() {
  static const std::vector<std::pair<std::string, Make>> table{{Typed<F>::code(), &Typed<F>::make}...};
  return table;
}

/// The shapes of schemas that are called unboxed: what models, losses and optimizers are made of.
const std::vector<std::pair<std::string, Make>>& shapes() {
  return table_of<
      Out(T), M(M),                                                                                       // abs, abs_
      Out(T, T), M(M, T), Out(T, S), M(M, S),                                                             // mul, mul_, mul by a number
      Out(T, T, S), M(M, T, S), Out(T, S, S), M(M, S, S), Out(S, T),                                      // add with alpha, pow
      Out(T, T, T), M(M, T, T), Out(T, T, T, S), M(M, T, T, S),                                           // where, lerp, addcmul
      Out(T, T, T, S, S), M(M, T, T, S, S),                                                               // addmm
      Out(T, Int), Out(T, Int, Int), Out(T, Sym), Out(T, Int, Sym), Out(T, Int, Sym, Sym),                // select, transpose, narrow
      Out(T, Ints), Out(T, Syms), Out(T, Syms, bool),                                                     // permute, view, expand
      Out(T, Int, bool), Out(T, Ints, bool), Out(T, Dims, bool), Out(T, Dims, bool, Type), Out(T, Type),  // sums and means
      Out(T, Int, Type), Out(T, bool), M(M, bool), M(M, T, bool),                                         // softmax, copy_
      Out(T, T, OptT), Out(T, Syms, OptT, OptT, double, bool),                                            // linear, layer_norm
      Out(T, Int, T), Out(T, Int, T, bool), Out(T, Int, T, T), M(M, Int, T, T), M(M, Int, T, S),          // index_select, gather, scatter
      Out(T, OptS, OptS), M(M, OptS, OptS), Out(T, OptT, OptT),                                           // clamp
      Two(T, Int, bool), Two(T, Sym, Int, bool, bool), Two(T, T), Many(T, Int), Many(T, Sym, Int), Many(T, Int, Int)>();  // max, topk
}

bool fits(const Slot& slot, char code, const Source& source, const PlainCall& call) {
  if (source.place == Fit::kDefault) {
    return code != 'T' && code != 'M' && slot.fallback;
  }
  const Code given = call.values[static_cast<std::size_t>(source.place)].code;
  if (code == 'T' || code == 'M') {
    return given == Code::tensor;  // a number in its place would have to be wrapped
  }
  return code != 't' || given == Code::tensor || given == Code::nil;
}

}  // namespace

std::unique_ptr<FastOperator> make_fast(const Signature& signature, const PlainCall& call, const Fit& fit) {
  const std::string code = code_of(signature.handle.schema());
  const auto shape = std::find_if(shapes().begin(), shapes().end(), [&](const auto& entry) { return entry.first == code; });
  if (shape == shapes().end()) {
    return nullptr;
  }
  std::vector<Source> sources;
  for (std::size_t i = 0; i < signature.parameters.size(); ++i) {
    const Slot& slot = signature.parameters[i];
    const bool spread = fit.spread_from == static_cast<int>(i) && fit.source[i] == fit.spread_from;
    const bool keyword = fit.source[i] >= Fit::kKeyword;
    if (spread && slot.type.kind != Kind::integer) {
      return nullptr;
    }
    const int place = keyword ? call.count + fit.source[i] - Fit::kKeyword : fit.source[i];
    sources.push_back({static_cast<std::int16_t>(place), spread, slot.type.size});
    if (!fits(slot, code[i], sources.back(), call) || slot.type.size > PlainCall::kMostItems) {
      return nullptr;
    }
  }
  try {
    return shape->second(signature, sources);
  } catch (const c10::Error&) {
    return nullptr;  // its C++ type is another than the schema's usual one (resize_): boxed, as the rest
  }
}

void CallPlans::add(CallPlan plan) {
  plans_.reserve(kMostPlans);  // a call may add a plan while another is in use
  if (plans_.size() < kMostPlans) {
    plans_.push_back(std::move(plan));
  }
}

}  // namespace kf::lua
