#pragma once
// Every kind of part, one registry each. Made by the application and handed down; nothing is global.

#include <functional>
#include <memory>

#include "config/config.h"
#include "config/part.h"
#include "registry/registry.h"

namespace kf {

class Model;
class Norm;
class Mlp;
class Router;
class Optimizer;
class Loss;
class Hook;
struct ParamGroup;
struct Schedule;
struct Registries;

/// What every factory gets: the whole job, and the part's own checked options.
struct PartArgs {
  const config::Config& config;
  const config::PartOptions& options;
  const Registries& registries;
};

using ModelFactory = std::function<std::shared_ptr<Model>(const PartArgs&)>;
using NormFactory = std::function<std::shared_ptr<Norm>(const PartArgs&, std::int64_t dim, double eps)>;
using MlpFactory = std::function<std::shared_ptr<Mlp>(const PartArgs&, std::int64_t dim, std::int64_t hidden)>;
using RouterFactory = std::function<std::shared_ptr<Router>(const PartArgs&, std::int64_t dim, std::int64_t layer)>;
using LossFactory = std::function<std::unique_ptr<Loss>(const PartArgs&)>;
using OptimizerFactory = std::function<std::unique_ptr<Optimizer>(const PartArgs&, std::vector<ParamGroup>)>;
using ScheduleFactory = std::function<std::unique_ptr<Schedule>(const PartArgs&, std::int64_t max_steps)>;
using HookFactory = std::function<std::unique_ptr<Hook>(const PartArgs&)>;
/// Whether a checkpoint is due at `step` (within a window [start, stop]).
using CheckpointStrategy = std::function<bool(std::int64_t start, std::int64_t stop, std::int64_t step)>;

struct Registries {
  Registry<ModelFactory> model{"model"};
  Registry<NormFactory> norm{"norm"};
  Registry<MlpFactory> mlp{"mlp"};
  Registry<RouterFactory> router{"router"};
  Registry<LossFactory> loss{"loss"};
  Registry<OptimizerFactory> optimizer{"optimizer"};
  Registry<ScheduleFactory> scheduler{"scheduler"};
  Registry<HookFactory> hook{"hook"};
  Registry<CheckpointStrategy> ckpt_strategy{"ckpt_strategy"};

  /// Names, docs and own fields of every kind, for the schema.
  config::Catalog catalog() const;
  /// The checked `[kind.name]` table of a part, defaults filled in.
  static const config::PartOptions& options_of(const config::Config& config, const std::string& kind, const std::string& name);
};

/// The explicit list of native parts (builtins.cpp); no static constructors.
Registries native_registries();

}  // namespace kf
