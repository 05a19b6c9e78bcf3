#pragma once
// The parts that a job names, made from the registries; the model and the data have makers of their own (`model/transformer/build.h`,
// `data/loader/loader.h`).

#include <cstdint>
#include <functional>
#include <memory>

#include "generate/generate.h"
#include "model/model.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "registry/registries.h"
#include "train/loop/hooks.h"
#include "train/step/loss.h"

namespace kf {

/// optimizer.name over the weights of `model`, in groups by optimizer.decay_*; says the groups where they are not the usual ones.
std::unique_ptr<Optimizer> make_optimizer(const config::Config& config, const Registries& registries, Model& model);

/// train.loss_fn.
std::unique_ptr<Loss> make_loss(const config::Config& config, const Registries& registries);

/// scheduler.name for a run of `span`, with the ending that [scheduler] asks for.
std::unique_ptr<Schedule> make_schedule(const config::Config& config, const Registries& registries, const ScheduleSpan& span);

/// `hooks`, then the metrics of metrics.extra, then what `last` makes (it may be empty).
Hooks make_hooks(const config::Config& config, const Registries& registries, const std::function<std::unique_ptr<Hook>()>& last);

/// generate.strategy.
std::unique_ptr<TokenChooser> sampler_of(const config::Config& config, const Registries& registries);
/// [generate], without a strategy.
GenerateOptions generate_options(const config::GenerateConfig& config);

}  // namespace kf
