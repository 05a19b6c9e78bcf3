#include "optim/values.h"

namespace kf {

at::Tensor value_beside(const Parameter& weight) {
  const bool apart = weight.unit == nullptr && !weight.value.is_same(weight.master) && weight.value.sizes() == weight.master.sizes();
  return apart ? weight.value.detach() : at::Tensor();
}

std::vector<at::Tensor> values_beside(const TensorLists& lists) {
  std::vector<at::Tensor> values;
  for (const Parameter* const weight : lists.parameters) {
    values.push_back(value_beside(*weight));
  }
  return values;
}

void say_written(const TensorLists& lists, const std::vector<at::Tensor>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].defined()) {
      lists.parameters[i]->value_written();
    }
  }
}

}  // namespace kf
