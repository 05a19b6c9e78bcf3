#include "train/loop/data_phases.h"

#include <utility>

#include "core/text.h"
#include "data/order/phases.h"

namespace kf {

std::vector<Phase> data_phases(const config::DataConfig& data, std::int64_t max_steps) {
  std::vector<Phase> out;
  const std::vector<config::TrainingPhase> changes = phases_of(data);
  for (std::size_t i = 0; i < changes.size() && changes[i].start_step < max_steps; ++i) {
    if (out.empty() && changes[i].start_step > 0) {
      out.emplace_back().start_step = 0;
    }
    if (!out.empty()) {
      out.back().until_step = changes[i].start_step;
    }
    Phase& phase = out.emplace_back();
    phase.name = data.phases.empty() ? "annealing" : format("data.phases[{}]", i);
    phase.start_step = changes[i].start_step;
    phase.lr_scale = changes[i].lr_scale;
  }
  return out;
}

}  // namespace kf
