#pragma once
// Tensors in pieces: what a rank writes into a checkpoint and reads from it, whoever else holds the rest.

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/model.h"
#include "model/placement.h"

namespace kf {

/// A part of a named tensor. (`Piece` alone is a part of a document, data/sequence.)
struct TensorPiece {
  std::string name;
  Shape shape;        // of the whole
  Range range;        // of the whole
  at::Tensor tensor;  // what lies there, of the range's size; any strides
};

/// Which part of each weight lies here.
using Placements = std::function<Placement(const Parameter&)>;
/// As the layout has it (layout/parallelize.h).
inline Placement own_placement(const Parameter& weight) { return weight.placement; }

/// The part of one stored tensor that lies here, as a view of the weight's master; nothing where all of it lies elsewhere.
std::optional<TensorPiece> piece_of(const Parameter& weight, const StoredView& view, const Placement& placement);

/// The masters under their state-dict names, as far as they lie here; shared ones once, under the name that is listed; stacks of experts
/// in the form that the model writes.
std::vector<TensorPiece> pieces_of(Model& model, const Placements& placements = own_placement);

/// The place of an optimizer's tensors, which are named SLOT.WEIGHT: one that is shaped as its weight lies where the weight does, or, where
/// one rank updates a weight that tp divides (Parameter::gathered), on that rank; of a stack whose experts are divided, as many rows for
/// each expert lie where it does (matrices, numbers a row); any other is whole.
class MomentPlaces {
 public:
  explicit MomentPlaces(Model& model, const Placements& placements = own_placement);

  /// A tensor that is here, as a piece.
  TensorPiece piece(const std::string& name, const at::Tensor& tensor) const;
  /// What lies here of a tensor that has this shape as a whole.
  Range range(const std::string& name, const Shape& whole) const;
  /// Whether the tensor, or the number of this name, is of a weight of which nothing lies here.
  bool elsewhere(const std::string& name) const;

 private:
  struct Place {
    Shape shape;
    Range range;
    bool experts = false;  // of a stack
    bool divides_experts() const;
  };
  const Place* find(const std::string& name) const;

  std::map<std::string, Place> weights_, updates_;  // by the weight's name: where it lies, and where what updates it does
};

}  // namespace kf
