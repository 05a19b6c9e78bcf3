#include "checkpoint/foreign/saved_values.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/ne.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"

namespace kf {
namespace {

using pickle::SavedFile;
using pickle::SavedTensor;

constexpr std::pair<std::string_view, at::ScalarType> kTypes[] = {
    {"torch.float32", at::kFloat},
    {"torch.float64", at::kDouble},
    {"torch.float16", at::kHalf},
    {"torch.bfloat16", at::kBFloat16},
    {"torch.int8", at::kChar},
    {"torch.int16", at::kShort},
    {"torch.int32", at::kInt},
    {"torch.int64", at::kLong},
    {"torch.uint8", at::kByte},
    {"torch.uint16", at::kUInt16},
    {"torch.uint32", at::kUInt32},
    {"torch.uint64", at::kUInt64},
    {"torch.bool", at::kBool},
    {"torch.complex64", at::kComplexFloat},
    {"torch.complex128", at::kComplexDouble},
    {"torch.float8_e4m3fn", at::kFloat8_e4m3fn},
    {"torch.float8_e5m2", at::kFloat8_e5m2},
    {"torch.float8_e4m3fnuz", at::kFloat8_e4m3fnuz},
    {"torch.float8_e5m2fnuz", at::kFloat8_e5m2fnuz},
};

std::uint64_t count_of(const SavedTensor& tensor) {
  std::uint64_t out = 1;
  for (const std::int64_t dim : tensor.shape) {
    out *= static_cast<std::uint64_t>(dim);  // bounded where it was read
  }
  return out;
}

/// A view of the mapped file, or of a copy where numbers do not lie as the processor wants them. `held` keeps the copy.
at::Tensor view_of(const SavedTensor& tensor, std::span<const std::byte> storage, std::vector<std::byte>& held) {
  const auto type = scalar_type(*tensor.type);
  storage = storage.subspan(tensor.offset * tensor.type->bytes);
  if (reinterpret_cast<std::uintptr_t>(storage.data()) % tensor.type->bytes != 0) {
    held.assign(storage.begin(), storage.end());
    storage = held;
  }
  // What is read as a bool must be 0 or 1: any other byte would be undefined behaviour in C++.
  const at::ScalarType safe = type == at::kBool ? at::kByte : type;
  const at::Tensor view =
      at::from_blob(const_cast<std::byte*>(storage.data()), tensor.shape, tensor.strides, at::TensorOptions().dtype(safe));  // only read
  return type == at::kBool ? at::ne(view, 0) : view;
}

}  // namespace

at::ScalarType scalar_type(const pickle::NumberType& type) {
  const auto* const found =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& known) { return known.first == type.dtype; });
  KF_CHECK(found != std::end(kTypes), Code::checkpoint, "numbers of the type {} are not read", type.dtype);
  return found->second;
}

void read_saved(const SavedFile& file, const SavedTensor& tensor, const std::string& name, const Range& range, const at::Tensor& into) {
  const at::NoGradGuard no_grad;
  if (range.numel() == 0) {
    return;
  }
  const bool whole = range.size == tensor.shape;
  const std::span<const std::byte> storage = file.storage(tensor, whole);
  KF_CHECK(count_of(tensor) <= storage.size() / tensor.type->bytes, Code::checkpoint,
           "{}: the tensor '{}' has {} numbers over a storage of {} (it was expanded); save a copy of it (.contiguous())", file.path(),
           name, count_of(tensor), storage.size() / tensor.type->bytes);
  std::vector<std::byte> held;
  into.copy_(range.of(view_of(tensor, storage, held)));
}

at::Tensor read_saved(const SavedFile& file, const SavedTensor& tensor, const std::string& name) {
  KF_CHECK(count_of(tensor) == 0 || count_of(tensor) <= file.storage(tensor, false).size(), Code::checkpoint,
           "{}: the tensor '{}' has {} numbers over a smaller storage (it was expanded); save a copy of it (.contiguous())", file.path(),
           name, count_of(tensor));
  at::Tensor out = at::empty(tensor.shape, at::TensorOptions().dtype(scalar_type(*tensor.type)));
  read_saved(file, tensor, name, Range::whole(tensor.shape), out);
  return out;
}

}  // namespace kf
