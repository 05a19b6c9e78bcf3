#include "model/init.h"

#include <cmath>

#include "config/schema/config.h"

namespace kf {
namespace {

bool by_fan_in(const config::ModelConfig& m) { return m.init == "fan_in"; }

}  // namespace

Init hidden_init(const config::ModelConfig& m, std::int64_t fan_in) {
  return by_fan_in(m) ? Init::truncated(std::sqrt(m.init_scale / static_cast<double>(fan_in))) : Init::normal(m.init_std);
}

Init output_init(const config::ModelConfig& m, std::int64_t fan_in) {
  return by_fan_in(m) ? hidden_init(m, fan_in) : Init::normal(m.init_std / std::sqrt(2.0 * static_cast<double>(m.n_layers)));
}

Init embedding_init(const config::ModelConfig& m) {
  return Init::normal(m.embed_init_std.value_or(by_fan_in(m) ? 1 / std::sqrt(static_cast<double>(m.dim)) : m.init_std));
}

}  // namespace kf
