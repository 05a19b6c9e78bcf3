#pragma once
// What an objective must know for pipelines.

#include "train/step/objective.h"

namespace kf {

class PieceObjective {
 public:
  virtual ~PieceObjective() = default;
  /// What a piece of a pipeline adds to the loss that has no head: `micro.forward` has the results of this piece, which has run. The terms
  /// are those of the loss, defined where the piece has a share; the total is undefined for nothing.
  virtual Minimised of_piece(Model& model, const Micro& micro) const = 0;
};

}  // namespace kf
