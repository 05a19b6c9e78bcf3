#include "bindings/tensor/names.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "bindings/vm/stack.h"
#include "core/error.h"

namespace kf::lua {
namespace {

template <class T>
using Names = std::vector<std::pair<std::string_view, T>>;

/// The first name of a type is the one shown; the others are PyTorch's and the settings' short forms.
const Names<at::ScalarType>& dtypes() {
  static const Names<at::ScalarType> all = {
      {"float32", at::kFloat},
      {"float64", at::kDouble},
      {"float16", at::kHalf},
      {"bfloat16", at::kBFloat16},
      {"int64", at::kLong},
      {"int32", at::kInt},
      {"int16", at::kShort},
      {"int8", at::kChar},
      {"uint8", at::kByte},
      {"bool", at::kBool},
      {"uint16", at::ScalarType::UInt16},
      {"uint32", at::ScalarType::UInt32},
      {"uint64", at::ScalarType::UInt64},
      {"complex64", at::kComplexFloat},
      {"complex128", at::kComplexDouble},
      {"complex32", at::kComplexHalf},
      {"float8_e4m3fn", at::kFloat8_e4m3fn},
      {"float8_e5m2", at::kFloat8_e5m2},
      {"float8_e4m3fnuz", at::kFloat8_e4m3fnuz},
      {"float8_e5m2fnuz", at::kFloat8_e5m2fnuz},
      {"float8_e8m0fnu", at::kFloat8_e8m0fnu},
      {"qint8", at::kQInt8},
      {"quint8", at::kQUInt8},
      {"qint32", at::kQInt32},
      {"float", at::kFloat},
      {"double", at::kDouble},
      {"half", at::kHalf},
      {"long", at::kLong},
      {"int", at::kInt},
      {"short", at::kShort},
      {"fp32", at::kFloat},
      {"fp64", at::kDouble},
      {"fp16", at::kHalf},
      {"bf16", at::kBFloat16},
  };
  return all;
}

const Names<at::Layout>& layouts() {
  static const Names<at::Layout> all = {{"strided", at::kStrided},      {"sparse_coo", at::kSparse},    {"sparse_csr", at::kSparseCsr},
                                        {"sparse_csc", at::kSparseCsc}, {"sparse_bsr", at::kSparseBsr}, {"sparse_bsc", at::kSparseBsc},
                                        {"mkldnn", at::Layout::Mkldnn}, {"jagged", at::Layout::Jagged}};
  return all;
}

const Names<at::MemoryFormat>& memory_formats() {
  static const Names<at::MemoryFormat> all = {{"contiguous_format", at::MemoryFormat::Contiguous},
                                              {"preserve_format", at::MemoryFormat::Preserve},
                                              {"channels_last", at::MemoryFormat::ChannelsLast},
                                              {"channels_last_3d", at::MemoryFormat::ChannelsLast3d}};
  return all;
}

template <class T>
std::optional<T> find(const Names<T>& names, std::string_view name) {
  for (const auto& [word, value] : names) {
    if (word == name) {
      return value;
    }
  }
  return std::nullopt;
}

template <class T>
std::string_view shown(const Names<T>& names, T value) {
  for (const auto& [word, known] : names) {
    if (known == value) {
      return word;
    }
  }
  return "unnamed";
}

}  // namespace

std::optional<at::ScalarType> dtype_named(std::string_view name) { return find(dtypes(), name); }
std::string_view name_of(at::ScalarType type) { return shown(dtypes(), type); }
std::optional<at::Layout> layout_named(std::string_view name) { return find(layouts(), name); }
std::string_view name_of(at::Layout layout) { return shown(layouts(), layout); }
std::optional<at::MemoryFormat> memory_format_named(std::string_view name) { return find(memory_formats(), name); }

std::optional<at::Device> device_named(std::string_view name) {
  const std::string_view type = name.substr(0, name.find(':'));
  if (type != "cpu" && type != "cuda" && type != "meta") {
    return std::nullopt;
  }
  try {
    return at::Device(std::string(name));
  } catch (const c10::Error&) {
    return std::nullopt;  // "cuda:x"
  }
}

std::optional<std::int64_t> reduction_named(std::string_view name) {
  const auto* const found = std::find(kReductionNames.begin(), kReductionNames.end(), name);
  return found != kReductionNames.end() ? std::optional<std::int64_t>(found - kReductionNames.begin()) : std::nullopt;
}

at::ScalarType check_dtype(std::string_view name, std::string_view function) {
  if (const auto type = dtype_named(name)) {
    return *type;
  }
  std::vector<std::string> names;
  for (const auto& [word, type] : dtypes()) {
    names.emplace_back(word);
  }
  fail(Code::script, "{}: no dtype '{}'{}", function, name, suggestion(name, names));
}

}  // namespace kf::lua
