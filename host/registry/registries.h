#pragma once
// One registry for every kind of kinds.def. Made by the application and handed down; nothing is global.

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

class World;
struct Kernels;
struct Place;
struct Registries;

namespace config {
struct Stage;
}

/// What every factory gets: the whole job, the part's own checked options, and what it computes with.
struct PartArgs {
  const config::Config& config;
  const config::PartOptions& options;
  const Registries& registries;
  const Kernels* kernels;                // kernels/kernels.h; null in a process without the engine
  const World* world = nullptr;          // parallel/world.h: over whom the numbers of the layers are spread; null for one rank
  const config::Stage* stage = nullptr;  // config/plan/stages.h: of a model, the layers that are wanted; null for all
};

/// How weights are split over ranks: name patterns, each with "colwise", "rowwise", "sequence" or "replicate".
using ParallelPlan = std::vector<std::pair<std::string, std::string>>;
/// Whether a checkpoint is due at `step` (within a window [start, stop]).
using CheckpointStrategy = std::function<bool(std::int64_t start, std::int64_t stop, std::int64_t step)>;

/// The factory of a kind that makes `Product`; `More` is what it gets besides PartArgs, as the parameters of void(...).
template <class Product, class More>
struct FactoryOf;
template <class Product, class... More>
struct FactoryOf<Product, void(More...)> {
  using Type = std::function<Product(const PartArgs&, More...)>;
};

/// One member a kind: registries.optimizer.
struct Registries {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a type and parameters
#define KIND(name, product, more, chosen_by) Registry<FactoryOf<product, void more>::Type> name{#name};
#include "registry/kinds.def"

  /// Chooses the kernels that the parts of a job get; set where the native parts are added.
  const Kernels* (*kernels_of)(const config::Config&) = [](const config::Config&) -> const Kernels* { return nullptr; };

  /// Names, docs and own fields of every kind, for the schema.
  config::Catalog catalog() const;
  /// The checked `[kind.name]` table of a part, defaults filled in.
  static const config::PartOptions& options_of(const config::Config& config, const std::string& kind, const std::string& name);
};

/// f(registry) for every kind, in the order of kinds.def.
template <class All, class F>
void for_each_kind(All& registries, F&& f) {
#define KIND(name, product, more, chosen_by) f(registries.name);
#include "registry/kinds.def"
}

/// The part `name` of a kind, by its own checked options, for another part that is made of it: `args` are the other one's. `more` is what
/// its factory gets besides.
template <class Factory, class... More>
auto make_part(const Registry<Factory>& registry, const std::string& name, const PartArgs& args, More&&... more) {
  const PartArgs own{args.config, Registries::options_of(args.config, registry.kind(), name), args.registries, args.kernels, args.world,
                     args.stage};
  return registry.get(name).factory(own, std::forward<More>(more)...);
}

/// The same for a part of a run.
template <class Factory, class... More>
auto make_part(const Registry<Factory>& registry, const std::string& name, const config::Config& config, const Registries& registries,
               More&&... more) {
  const config::PartOptions none;
  return make_part(registry, name, PartArgs{config, none, registries, registries.kernels_of(config)}, std::forward<More>(more)...);
}

}  // namespace kf
