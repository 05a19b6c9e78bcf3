#pragma once
// A model as a plan sees it: its weights without tensors, and what a rank of a layout has of each.

#include <compare>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "config/plan/activation_bytes.h"
#include "config/plan/stages.h"
#include "config/schema/config.h"
#include "parallel/mesh/mesh.h"

namespace kf::plan {

/// One weight.
struct Weight {
  /// How tensor parallelism divides it, or each of its experts: by its outputs, by its inputs, or not.
  enum class Cut : std::int8_t { none, rows, columns };

  std::string name;
  std::vector<std::int64_t> shape;
  Cut cut = Cut::none;
  std::int64_t unit = 1;  // entries of the divided dim that stay together
  bool experts = false;   // a stack of experts, which expert parallelism divides
  bool low = false;       // forward reads 16-bit numbers
  bool trains = true;
  bool buffer = false;     // moved by the model's own rule
  bool whole = false;      // the optimizer needs it on one rank
  double state_bytes = 0;  // of the optimizer, for all of it

  double numbers() const;
};

/// All weights of a model, and how its optimizer passes over them.
struct Weights {
  std::vector<Weight> all;
  std::vector<config::AdaptedLayer> adapters;
  double copies = 0;       // fp32 copies of all that a rank trains, beside an update
  bool by_tensor = false;  // or a few copies of one weight after the other
  bool known = true;       // whether everything that lives is known: parts in Lua hold more
  /// By layer: the first one that is like it (find_alike); empty: each is like itself alone.
  std::vector<std::int64_t> alike;
};

/// Fills `alike`: layers with equal weights that compute alike take the same memory and time, and a plan looks at one of them.
void find_alike(const config::Config& config, Weights& weights);

/// Layers that are alike: the first of all, and how many of them a piece has.
struct LikeLayers {
  std::int64_t layer = 0;
  std::int64_t count = 0;
  bool operator==(const LikeLayers&) const = default;
  auto operator<=>(const LikeLayers&) const = default;  // NOLINT(modernize-use-nullptr): sees a pointer in it
};
std::vector<LikeLayers> layers_of(const Weights& weights, const config::Stage& piece);

/// A layout of a job on a world: the mesh, and the pieces of the model by stage.
struct Layout {
  Mesh mesh;
  std::int64_t zero_stage = 3;
  /// By coordinate along pp: its pieces, first layer first; one but for pp_schedule = "interleaved_1f1b".
  std::vector<std::vector<config::Stage>> stages;

  /// [distributed] of the job on `world` ranks. Throws Code::config where degrees do not make up the world, or stages the model.
  static Layout of(const config::Config& config, std::int64_t world);

  /// Over how many ranks the rows of a weight are cut.
  std::int64_t shards(const Weight& weight) const;
  /// Layers of a stage.
  std::int64_t layers(std::int64_t stage) const;
};

/// The embedding of tokens, and whether the last stage reads it, too: as its head, or for what looks ahead.
bool is_embedding(const Weight& weight);
bool on_both_ends(const config::ModelConfig& model);

/// The weights of a stage. What is on both ends is in the first and in the last.
std::vector<const Weight*> weights_of(const Weights& weights, const Layout& layout, const config::ModelConfig& model, std::int64_t stage);

/// What a stage is made of: the same for stages that hold and compute the same.
using Composition = std::vector<std::tuple<bool, bool, std::vector<LikeLayers>>>;  // by piece: embeds, heads, layers
Composition composition_of(const Weights& weights, const Layout& layout, std::int64_t stage);

/// Numbers of a weight that a rank holds: what tp and ep leave.
double held_numbers(const Weight& weight, const Layout& layout);

/// The layer that a weight is of; -1 for what stands before the layers, `layers` for what stands behind them.
std::int64_t layer_of(const std::string& name, std::int64_t layers);

}  // namespace kf::plan
