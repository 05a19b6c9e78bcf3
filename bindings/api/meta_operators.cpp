#include "bindings/api/meta_operators.h"

#include <ATen/core/ivalue.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "bindings/tensor/operators.h"
#include "core/text.h"

namespace kf::lua {
namespace {

constexpr std::size_t kMostOverloads = 3;

/// Names that Lua has for itself.
bool is_keyword(std::string_view name) {
  constexpr std::array kWords = {"and", "break", "do",  "else", "elseif", "end",    "false",  "for",  "function", "goto",  "if",
                                 "in",  "local", "nil", "not",  "or",     "repeat", "return", "then", "true",     "until", "while"};
  return std::find(kWords.begin(), kWords.end(), name) != kWords.end();
}

std::string item_type(Kind kind) {
  switch (kind) {
    case Kind::tensor: return "kf.Tensor";
    case Kind::integer: return "integer";
    case Kind::reduction: return "string";
    case Kind::real:
    case Kind::scalar: return "number";
    case Kind::boolean: return "boolean";
    case Kind::text:
    case Kind::dimname:
    case Kind::dtype:
    case Kind::layout:
    case Kind::memory_format:
    case Kind::device: return "string";
    case Kind::generator:
    case Kind::unknown: break;
  }
  return "any";
}

std::string type_of(const ArgumentType& type) {
  const std::string item = item_type(type.kind);
  return !type.list ? item : type.kind == Kind::integer && type.size == 1 ? item + "|" + item + "[]" : item + "[]";
}

std::string parameter_text(const Slot& slot, bool first) {
  const std::string name = first && slot.name == "self" ? "self" : is_keyword(slot.name) ? slot.name + "_" : slot.name;
  const bool optional = slot.fallback || slot.type.optional;
  return name + (optional ? "?: " : ": ") + type_of(slot.type);
}

/// "fun(self: kf.Tensor, dim: integer, options?: { dtype?: string }): kf.Tensor"
std::string function_text(const Signature& signature) {
  std::vector<std::string> places;
  std::vector<std::string> keywords;
  for (const Slot& slot : signature.parameters) {
    (slot.keyword_only ? keywords : places).push_back(parameter_text(slot, places.empty()));
  }
  if (!keywords.empty()) {
    places.push_back("options?: { " + join(keywords, ", ") + " }");
  }
  std::vector<std::string> results;
  for (const ArgumentType& type : signature.results) {
    results.push_back(type_of(type));
  }
  return "fun(" + join(places, ", ") + ")" + (results.empty() ? "" : ": " + join(results, ", "));
}

/// Overloads that a reader would choose from: out variants and names of dims are left out where there are others.
std::vector<std::string> functions_of(const Operator& op) {
  std::vector<std::string> usual;
  std::vector<std::string> all;
  for (const Signature& signature : op.overloads) {
    if (!signature.missing.empty()) {
      continue;
    }
    const bool odd = std::any_of(signature.parameters.begin(), signature.parameters.end(),
                                 [](const Slot& slot) { return slot.out || slot.type.kind == Kind::dimname; });
    std::string text = function_text(signature);
    if (!odd && std::find(usual.begin(), usual.end(), text) == usual.end()) {
      usual.push_back(text);
    }
    all.push_back(std::move(text));
  }
  std::vector<std::string>& out = usual.empty() ? all : usual;
  out.resize(std::min(out.size(), kMostOverloads));
  return out;
}

/// What scripts write: not what starts with an underscore, but for the loops over lists that optimizers are made of.
bool is_public(const std::string& name) {
  return (name.front() != '_' || name.starts_with("_foreach_")) && !name.ends_with("_backward") && !name.ends_with("_copy") &&
         name.find("_backward_") == std::string::npos && !name.starts_with("cudnn_") && !name.starts_with("miopen_") &&
         !name.starts_with("mkldnn_") && !name.starts_with("fbgemm_") && !name.starts_with("quantized_") && !name.starts_with("sym_");
}

std::string row(const std::string& name, const std::vector<std::string>& functions) {
  return format("---@field {} {}\n", is_keyword(name) ? "[\"" + name + "\"]" : name,
                functions.size() == 1 ? functions[0] : "(" + join(functions, ")|(") + ")");
}

}  // namespace

std::string operators_text() {
  std::string methods = "\n---@class kf.Methods\n";
  std::string others =
      "\n---@class kf.Op: kf.Methods\n"
      "---@field help fun(name: string): string  Prints the signatures of an operator.\n"
      "---@field list fun(): string[]  All names.\n"
      "---@field missing fun(): table[], integer  Schemas that Lua cannot call, with the reason; the number of all.\n"
      "---@field [string] function\n";
  for (const std::string& name : operator_names()) {
    const Operator& op = *find_operator(name);
    const std::vector<std::string> functions = functions_of(op);
    if (is_public(name) && !functions.empty()) {
      (op.method ? methods : others) += row(name, functions);
    }
  }
  return methods + others;
}

}  // namespace kf::lua
