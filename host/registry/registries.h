#pragma once
// Every kind of part, one registry each. Made by the application and handed down; nothing is global.

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "config/schema/config.h"
#include "config/schema/part.h"
#include "core/fs.h"
#include "registry/registry.h"

namespace kf {

class Model;
class Block;
class Attention;
class Norm;
class Mlp;
class RopeTables;
class Router;
class Optimizer;
class Loss;
class Dataset;
class Transform;
class Tokenizer;
class TokenSampler;
class Metric;
class Sink;
class PhaseRules;
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

/// Where in the model a part stands.
struct Place {
  std::int64_t layer = -1;            // index of the block, from 0; -1 outside the blocks
  std::int64_t dim = 0;               // C: width of what it gets and gives
  std::int64_t hidden = 0;            // mlp: inner width
  std::shared_ptr<RopeTables> ropes;  // the rotary tables that the layers of a model share; never null inside a block
};

using ModelFactory = std::function<std::shared_ptr<Model>(const PartArgs&)>;
using BlockFactory = std::function<std::shared_ptr<Block>(const PartArgs&, const Place&)>;
using AttentionFactory = std::function<std::shared_ptr<Attention>(const PartArgs&, const Place&)>;
using NormFactory = std::function<std::shared_ptr<Norm>(const PartArgs&, const Place&)>;
using MlpFactory = std::function<std::shared_ptr<Mlp>(const PartArgs&, const Place&)>;
using RouterFactory = std::function<std::shared_ptr<Router>(const PartArgs&, const Place&)>;
using LossFactory = std::function<std::unique_ptr<Loss>(const PartArgs&)>;
using OptimizerFactory = std::function<std::unique_ptr<Optimizer>(const PartArgs&, std::vector<ParamGroup>)>;
using ScheduleFactory = std::function<std::unique_ptr<Schedule>(const PartArgs&, std::int64_t max_steps)>;
using DatasetFactory = std::function<std::unique_ptr<Dataset>(const PartArgs&, std::int64_t seq_len)>;
using TransformFactory = std::function<std::unique_ptr<Transform>(const PartArgs&)>;
using TokenizerFactory = std::function<std::unique_ptr<Tokenizer>(const PartArgs&)>;
using SamplerFactory = std::function<std::unique_ptr<TokenSampler>(const PartArgs&)>;
using MetricFactory = std::function<std::unique_ptr<Metric>(const PartArgs&)>;
/// `completed_steps`: of the run that goes on in the folder; 0 for a new one.
using SinkFactory = std::function<std::unique_ptr<Sink>(const PartArgs&, const fs::path& run_dir, std::int64_t completed_steps)>;
using PhaseFactory = std::function<std::unique_ptr<PhaseRules>(const PartArgs&)>;
/// How weights are split over ranks: name patterns, each with "colwise", "rowwise", "sequence" or "replicate".
using ParallelPlan = std::vector<std::pair<std::string, std::string>>;
using PlanFactory = std::function<ParallelPlan(const PartArgs&)>;
using HookFactory = std::function<std::unique_ptr<Hook>(const PartArgs&)>;
/// Whether a checkpoint is due at `step` (within a window [start, stop]).
using CheckpointStrategy = std::function<bool(std::int64_t start, std::int64_t stop, std::int64_t step)>;
using StrategyFactory = std::function<CheckpointStrategy(const PartArgs&)>;

struct Registries {
  Registry<ModelFactory> model{"model"};
  Registry<BlockFactory> block{"block"};
  Registry<AttentionFactory> attention{"attention"};
  Registry<NormFactory> norm{"norm"};
  Registry<MlpFactory> mlp{"mlp"};
  Registry<RouterFactory> router{"router"};
  Registry<LossFactory> loss{"loss"};
  Registry<OptimizerFactory> optimizer{"optimizer"};
  Registry<ScheduleFactory> scheduler{"scheduler"};
  Registry<DatasetFactory> dataset{"dataset"};
  Registry<TransformFactory> transform{"transform"};
  Registry<TokenizerFactory> tokenizer{"tokenizer"};
  Registry<SamplerFactory> sampler{"sampler"};
  Registry<MetricFactory> metric{"metric"};
  Registry<SinkFactory> sink{"sink"};
  Registry<StrategyFactory> ckpt_strategy{"ckpt_strategy"};
  Registry<PhaseFactory> phase{"phase"};
  Registry<HookFactory> hook{"hook"};
  Registry<PlanFactory> parallel_plan{"parallel_plan"};

  /// Names, docs and own fields of every kind, for the schema.
  config::Catalog catalog() const;
  /// The checked `[kind.name]` table of a part, defaults filled in.
  static const config::PartOptions& options_of(const config::Config& config, const std::string& kind, const std::string& name);
};

/// The part `name` of a kind, by its own checked options; `more` is what its factory takes besides.
template <class Factory, class... More>
auto make_part(const Registry<Factory>& registry, const std::string& name, const PartArgs& args, More&&... more) {
  const PartArgs own{args.config, Registries::options_of(args.config, registry.kind(), name), args.registries};
  return registry.get(name).factory(own, std::forward<More>(more)...);
}

/// The explicit list of native parts (builtins.cpp); no static constructors.
Registries native_registries();

}  // namespace kf
