#pragma once
// Types, layouts and devices by their names in Lua: "float32", "bf16", "channels_last", "cpu".

#include <ATen/core/Tensor.h>
#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kf::lua {

std::optional<at::ScalarType> dtype_named(std::string_view name);
/// The name that Lua sees: "float32", "bfloat16".
std::string_view name_of(at::ScalarType type);
std::optional<at::Layout> layout_named(std::string_view name);
std::string_view name_of(at::Layout layout);
std::optional<at::MemoryFormat> memory_format_named(std::string_view name);
/// "cpu", "cuda:0"; nothing when it is no device.
std::optional<at::Device> device_named(std::string_view name);

/// How losses add up, in the order of at::Reduction.
inline constexpr std::array<std::string_view, 3> kReductionNames = {"none", "mean", "sum"};
std::optional<std::int64_t> reduction_named(std::string_view name);

/// Throws Code::script with the nearest name: "kf.zeros: no dtype 'float23'; did you mean 'float32'?".
at::ScalarType check_dtype(std::string_view name, std::string_view function);

}  // namespace kf::lua
