#pragma once
// Tensors by name, from wherever they lie.

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/files/pieces.h"

namespace kf {

struct TensorKind {
  Shape shape;
  at::ScalarType type = at::kFloat;
};

/// Tensors by name, from wherever they lie.
struct NamedTensors {
  /// What can be known and read without reading all of a tensor.
  struct Ranged {
    std::function<TensorKind(const std::string&)> kind;
    std::function<void(const TensorPiece& into)> read;
  };
  std::vector<std::string> names;
  std::function<at::Tensor(const std::string&)> get;  // all of it, for each of `names`
  std::optional<Ranged> ranged = {};                  // nothing: `get` is asked for whatever is needed
};

}  // namespace kf
