#pragma once
// The classes and functions that a pickle may name: the list of those that files of tensors need. None is ever called.

#include <cstdint>
#include <string_view>

namespace kf::pickle {

/// "torch.FloatStorage" for the module "torch" and the name "FloatStorage", where that is on the list; "" for anything else. Python 2's
/// names of modules are taken for today's.
std::string_view allowed_global(std::string_view module, std::string_view name);

/// A type of numbers by one of its names.
struct NumberType {
  std::string_view dtype;    // "torch.float32"
  std::string_view storage;  // "torch.FloatStorage"; "" where torch has no class of it
  std::uint64_t bytes;
};
/// By the name of its dtype or of its storage's class; nullptr for anything else (quantized types, untyped storages).
const NumberType* number_type(std::string_view name);

}  // namespace kf::pickle
