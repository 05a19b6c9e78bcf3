#include "model/staged.h"

#include <algorithm>

namespace kf {

const Parameter& like_hidden(const ParameterList& weights) {
  const auto matrix = std::find_if(weights.begin(), weights.end(),
                                   [](const ParameterPtr& weight) { return weight->shape.size() >= 2 && !weight->keep_fp32; });
  return matrix == weights.end() ? *weights.front() : **matrix;
}

}  // namespace kf
