#include "bindings/tensor/signature.h"

#include <ATen/ATen.h>

#include <set>

#include "bindings/tensor/names.h"
#include "core/text.h"

namespace kf::lua {
namespace {

Kind plain_kind(c10::TypeKind kind) {
  switch (kind) {
    case c10::TypeKind::TensorType: return Kind::tensor;
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType: return Kind::integer;
    case c10::TypeKind::FloatType:
    case c10::TypeKind::SymFloatType: return Kind::real;
    case c10::TypeKind::BoolType:
    case c10::TypeKind::SymBoolType: return Kind::boolean;
    case c10::TypeKind::NumberType: return Kind::scalar;
    case c10::TypeKind::StringType: return Kind::text;
    case c10::TypeKind::ScalarTypeType: return Kind::dtype;
    case c10::TypeKind::LayoutType: return Kind::layout;
    case c10::TypeKind::MemoryFormatType: return Kind::memory_format;
    case c10::TypeKind::DeviceObjType: return Kind::device;
    case c10::TypeKind::GeneratorType: return Kind::generator;
    case c10::TypeKind::QSchemeType: return Kind::integer;
    default: return Kind::unknown;
  }
}

/// Dimension names look like any string; only the overload's name tells.
bool takes_dimnames(const std::string& name, const std::string& overload) {
  return overload.find("name") != std::string::npos || overload.find("Dimname") != std::string::npos || name == "align_to" ||
         name == "refine_names" || name == "rename" || name == "rename_";
}

constexpr const char* kKindTexts[] = {"Tensor",   "int",   "reduction", "float",         "bool",   "Scalar",    "str",
                                      "dim name", "dtype", "layout",    "memory_format", "device", "generator", "unknown"};

std::string default_text(const c10::IValue& value, const ArgumentType& type) {
  if (value.isNone()) {
    return "nil";
  }
  if (type.kind == Kind::dtype && value.isInt()) {
    return std::string(name_of(static_cast<at::ScalarType>(value.toInt())));
  }
  if (type.kind == Kind::reduction && value.isInt()) {
    return "\"" + std::string(kReductionNames.at(static_cast<std::size_t>(value.toInt()))) + "\"";
  }
  if (value.isBool()) {
    return value.toBool() ? "true" : "false";
  }
  if (value.isInt()) {
    return to_text(value.toInt());
  }
  if (value.isDouble()) {
    return to_text(value.toDouble());
  }
  if (value.isString()) {
    return "\"" + value.toStringRef() + "\"";
  }
  if (value.isIntList()) {
    std::vector<std::string> items;
    for (const std::int64_t item : value.toIntVector()) {
      items.push_back(to_text(item));
    }
    return "{" + join(items, ", ") + "}";
  }
  return value.isList() ? "{}" : "...";
}

/// What PyTorch's functions of Python take one by one, too: torch.einsum("ij,jk->ik", a, b).
bool takes_tensors(const std::string& name) {
  static const std::set<std::string> names = {"einsum", "meshgrid", "block_diag", "cartesian_prod", "broadcast_tensors", "chain_matmul"};
  return names.count(name) > 0;
}

}  // namespace

ArgumentType argument_type(const c10::TypePtr& type, const std::optional<std::int32_t>& size) {
  ArgumentType out;
  c10::TypePtr inner = type;
  if (inner->kind() == c10::TypeKind::OptionalType) {
    out.optional = true;
    inner = inner->castRaw<c10::OptionalType>()->getElementType();
  }
  if (inner->kind() == c10::TypeKind::ListType) {
    out.list = true;
    out.size = size.value_or(0);
    inner = inner->castRaw<c10::ListType>()->getElementType();
    if (inner->kind() == c10::TypeKind::OptionalType) {
      out.optional_elements = true;
      inner = inner->castRaw<c10::OptionalType>()->getElementType();
    }
  }
  out.kind = plain_kind(inner->kind());
  return out;
}

std::string type_text(const ArgumentType& type) {
  std::string out = kKindTexts[static_cast<std::size_t>(type.kind)];
  if (type.list) {
    out += (type.optional_elements ? "?[" : "[") + (type.size > 0 ? to_text(type.size) : "") + "]";
  }
  return type.optional ? out + "?" : out;
}

Signature::Signature(c10::OperatorHandle op) : handle(std::move(op)) {
  const c10::FunctionSchema& schema = handle.schema();
  name = schema.name().substr(schema.name().find("::") + 2);
  overload = schema.overload_name();
  for (const c10::Argument& argument : schema.arguments()) {
    Slot slot{argument.name(), argument_type(argument.real_type(), argument.N()), argument.kwarg_only(), argument.is_out(),
              argument.default_value().has_value()};
    if (slot.type.kind == Kind::text && takes_dimnames(name, overload)) {
      slot.type.kind = Kind::dimname;
    }
    if (slot.type.kind == Kind::integer && !slot.type.list && slot.name == "reduction") {
      slot.type.kind = Kind::reduction;
    }
    if (slot.type.kind == Kind::unknown) {
      missing = format("argument '{}' is a {}, which Lua has no value for", slot.name, argument.real_type()->str());
    }
    if (!slot.keyword_only) {
      const bool spreads = slot.type.kind == Kind::integer || (slot.type.kind == Kind::tensor && takes_tensors(name));
      if (first_list < 0 && slot.type.list && spreads) {
        first_list = positional;
      }
      ++positional;
    }
    parameters.push_back(std::move(slot));
  }
  for (const c10::Argument& result : schema.returns()) {
    results.push_back(argument_type(result.real_type(), result.N()));
    fresh.push_back(result.alias_info() == nullptr);
    if (results.back().kind == Kind::unknown && missing.empty()) {
      missing = format("its result is a {}, which Lua has no value for", result.real_type()->str());
    }
  }
}

std::string Signature::text() const {
  std::vector<std::string> words;
  bool keywords = false;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Slot& slot = parameters[i];
    if (slot.keyword_only && !keywords) {
      keywords = true;
      words.emplace_back("*");
    }
    std::string word = slot.name + ": " + type_text(slot.type);
    if (slot.fallback) {
      word += " = " + default_text(*handle.schema().arguments()[i].default_value(), slot.type);
    }
    words.push_back(std::move(word));
  }
  std::vector<std::string> outs;
  for (const ArgumentType& type : results) {
    outs.push_back(type_text(type));
  }
  return format("{}{}({}){}", name, overload.empty() ? "" : "." + overload, join(words, ", "),
                outs.empty() ? "" : " -> " + join(outs, ", "));
}

}  // namespace kf::lua
