#include "optim/scion.h"

#include <ATen/ATen.h>

#include <cmath>

#include "kernels/adamw/adamw.h"
#include "optim/muon.h"

namespace kf {

const config::OwnFields<ScionOptions>& scion_fields() {
  using config::field;
  static const config::OwnFields<ScionOptions> fields{
      field("hidden_radius", &ScionOptions::hidden_radius, config::above(0), "Radius for hidden matrices."),
      field("other_radius", &ScionOptions::other_radius, config::above(0), "Radius for embedding, head and vectors."),
  };
  return fields;
}

Scion::Scion(std::vector<ParamGroup> groups, const ScionOptions& options)
    : GroupOptimizer(std::move(groups), {{"momentum"}}), options_(options) {}

void Scion::update(TensorLists& lists, double lr, double weight_decay) {
  decay_weights(lists.masters, lr, weight_decay);
  for (std::size_t i = 0; i < lists.masters.size(); ++i) {
    const Parameter& parameter = *lists.parameters[i];
    at::Tensor& m = lists.slots[0][i];
    m.lerp_(lists.gradients[i], 1 - options_.beta1);
    if (muon_takes(parameter, /*by_shape=*/false)) {
      const at::Tensor matrix = m.dim() == 3 ? m : m.flatten(1);
      const double scale = std::sqrt(static_cast<double>(matrix.size(-2)) / static_cast<double>(matrix.size(-1)));
      lists.masters[i].sub_(newton_schulz(matrix, options_.ns_steps).view_as(m), lr * options_.hidden_radius * scale);
    } else {
      const double in = parameter.role == Role::head ? static_cast<double>(parameter.shape.back()) : 1;
      lists.masters[i].sub_(m.sign(), lr * options_.other_radius / in);
    }
  }
}

}  // namespace kf
