#include "config/plan/rank_memory.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "config/plan/batch_plan.h"
#include "config/plan/derived.h"

namespace kf::plan {
namespace {

using Amounts = std::vector<std::pair<std::string, double>>;

constexpr double kTensorCopies = 4;  // of the weight that an optimizer works on, as optim/state_bytes.h has it
constexpr double kPiece = 8 << 20;   // numbers of a gradient that is summed as a whole, at a time

double sum(const Amounts& parts) {
  double out = 0;
  for (const auto& [name, bytes] : parts) {
    out += bytes;
  }
  return out;
}

/// Numbers of a group of weights that are gathered and reduced together: a block, or what is in none.
struct Unit {
  double cut = 0;      // bytes of the values that are cut along dp_shard, whole
  double numbers = 0;  // numbers of them that train
};

/// What stays from the first step to the last, and the sizes of what passes.
struct Holdings {
  double weights = 0;  // what the optimizer moves
  double copies = 0;   // what forward reads, where that is something else
  double state = 0;    // of the optimizer
  double trains = 0;   // numbers that train, of the whole weights that this rank holds
  double low = 0;      // of them those whose gradients arrive in 16 bits
  double part = 0;     // numbers that it trains itself
  double largest = 0;  // numbers of the largest weight that it trains itself
  double longest = 0;  // and of the largest one that it holds whole
  std::map<std::int64_t, Unit> units;

  double largest_block(double Unit::*member, std::int64_t layers) const {
    double out = 0;
    for (const auto& [layer, unit] : units) {
      out = layer >= 0 && layer < layers ? std::max(out, unit.*member) : out;
    }
    return out;
  }
  double rest(double Unit::*member, std::int64_t layers) const {
    double out = 0;
    for (const auto& [layer, unit] : units) {
      out += layer < 0 || layer >= layers ? unit.*member : 0;
    }
    return out;
  }
};

class Rank {
 public:
  Rank(const config::Config& config, const Weights& weights, const Layout& layout, std::int64_t stage)
      : config_(config), layout_(layout), layers_(config.model.n_layers), by_tensor_(weights.by_tensor), copies_(weights.copies) {
    std::vector<std::pair<double, const Weight*>> owned;
    for (const Weight* weight : weights_of(weights, layout, config.model, stage)) {
      const std::int64_t shards = layout.shards(*weight);
      if (shards > 1 && weight->whole && cuttable(*weight)) {
        owned.emplace_back(held_numbers(*weight, layout), weight);
      } else {
        add(*weight, shards > 1 && cuttable(*weight) ? part_of_rows(*weight, shards) : held_numbers(*weight, layout));
      }
    }
    give_to_owners(owned);
  }

  const Holdings& held() const { return held_; }
  bool by_tensor() const { return by_tensor_; }
  double copies() const { return copies_; }

 private:
  static bool cuttable(const Weight& weight) { return weight.trains && !weight.buffer && !weight.shape.empty(); }

  bool narrow() const { return config_.train.mixed_precision != "fp32"; }
  bool kept_low() const { return config_.train.param_dtype == "bf16" && config_.train.mixed_precision == "bf16"; }

  /// Rows as even as can be: the fullest rank has one more.
  double part_of_rows(const Weight& weight, std::int64_t shards) const {
    const double held = held_numbers(weight, layout_);
    const double rows = std::max(1.0, held / (weight.numbers() / static_cast<double>(weight.shape[0])));
    return std::ceil(rows / static_cast<double>(shards)) * held / rows;
  }

  void add(const Weight& weight, double part) {
    const double held = held_numbers(weight, layout_);
    const bool low = narrow() && weight.low;
    const bool alone = kept_low() || (!weight.trains && !weight.buffer);  // 16 bits, with no fp32 beside them
    const bool cut = layout_.shards(weight) > 1 && cuttable(weight);
    const bool passes = cut && layout_.zero_stage == 3;  // what forward reads is there while it is used
    const double width = low ? 2 : 4;
    if (!cut) {
      held_.weights += held * (low && alone ? 2 : 4);
      held_.copies += low && !alone ? held * 2 : 0;
    } else {
      const bool one = !passes && !(low && !alone);  // masters lie in the values
      held_.weights += one ? held * width : part * (low && alone ? 2 : 4);
      held_.copies += passes || one ? 0 : held * 2;
    }
    held_.state += weight.numbers() > 0 ? weight.state_bytes * part / weight.numbers() : 0;
    Unit& unit = held_.units[layer_of(weight.name, layers_)];
    unit.cut += cut ? held * width : 0;
    if (weight.trains && !weight.buffer) {
      held_.trains += held;
      held_.low += low ? held : 0;
      held_.part += part;
      held_.largest = std::max(held_.largest, part);
      held_.longest = std::max(held_.longest, held);
      unit.numbers += held;
    }
  }

  /// As layout/parallelize does it: the largest first, each to the rank that has least. The estimate is of the fullest.
  void give_to_owners(std::vector<std::pair<double, const Weight*>>& weights) {
    std::stable_sort(weights.begin(), weights.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::map<std::int64_t, std::vector<double>> loads;  // by the number of ranks
    std::map<std::int64_t, std::vector<std::vector<const Weight*>>> owners;
    for (const auto& [numbers, weight] : weights) {
      const std::int64_t shards = layout_.shards(*weight);
      std::vector<double>& load = loads[shards];
      auto& taken = owners[shards];
      load.resize(static_cast<std::size_t>(shards), 0);
      taken.resize(static_cast<std::size_t>(shards));
      const auto least = std::min_element(load.begin(), load.end()) - load.begin();
      load[static_cast<std::size_t>(least)] += numbers;
      taken[static_cast<std::size_t>(least)].push_back(weight);
    }
    for (const auto& [shards, load] : loads) {
      const auto most = std::max_element(load.begin(), load.end()) - load.begin();
      for (std::size_t rank = 0; rank < load.size(); ++rank) {
        for (const Weight* weight : owners[shards][rank]) {
          add(*weight, static_cast<std::ptrdiff_t>(rank) == most ? held_numbers(*weight, layout_) : 0);
        }
      }
    }
  }

  const config::Config& config_;
  const Layout& layout_;
  std::int64_t layers_;
  bool by_tensor_;
  double copies_;
  Holdings held_;
};

/// Largest micro-batch of the run: phases may change both of its sides.
struct Micro {
  double rows = 0;
  double length = 0;
};

Micro largest_micro(const config::Config& config) {
  Micro out{static_cast<double>(config.train.batch_size), static_cast<double>(config.train.seq_len)};
  for (const config::PhaseEntry& phase : config.phases) {
    const Micro own{static_cast<double>(phase.batch_size.value_or(config.train.batch_size)),
                    static_cast<double>(phase.seq_len.value_or(config.train.seq_len))};
    if (own.rows * own.length > out.rows * out.length) {
      out = own;
    }
  }
  return out;
}

/// Activations of a stage: of all its pieces, and of all micro-batches that are under way.
config::ActivationBytes stage_activations(const config::Config& config, const Weights& weights, const Layout& layout, std::int64_t stage,
                                          const Micro& micro, bool training) {
  config::ActivationBytes out;
  for (const config::Stage& piece : layout.stages.at(static_cast<std::size_t>(stage))) {
    config::Spread spread;
    spread.tp = static_cast<double>(layout.mesh.degree(Axis::tp));
    spread.split_sequence = spread.tp > 1 && config.distributed.sequence_parallel;
    spread.cp = static_cast<double>(layout.mesh.degree(Axis::cp));
    spread.first = piece.first;
    spread.end = piece.end;
    spread.heads = piece.heads;
    const config::ActivationBytes own = config::activation_bytes(config, micro.rows, micro.length, training, weights.adapters, spread);
    out.kept += own.kept;
    out.passing = std::max(out.passing, own.passing);
    out.logits += own.logits;
  }
  return out;
}

/// Whether weights are cut over ranks at all.
bool divided(const Layout& layout) {
  return layout.mesh.degree(Axis::dp_shard) * layout.mesh.degree(Axis::cp) * layout.mesh.degree(Axis::ep) > 1;
}

/// Bytes of gradients at the moments of a step.
struct Gradients {
  double parts = 0;    // of what the rank trains: all that is left for the update
  double before = 0;   // when the last backward begins: what earlier micro-batches left
  double end = 0;      // at its end, with those of a block and of what is in none before they are summed over ranks
  double buffers = 0;  // in which they travel
};

/// Gradients of whole weights add up on each rank until the last backward, or, with reduce_each_micro, go to their parts behind each one.
/// A unit's are summed as soon as its backward is over, a bucket at a time; those of what is in no block are the first to come and the
/// last to go.
Gradients gradients_of(const config::Config& config, const Layout& layout, const Holdings& mine, bool several) {
  const std::int64_t layers = config.model.n_layers;
  const double number = config.train.grad_dtype == "bf16" ? 2 : 4, travels = config.distributed.reduce_dtype == "bf16" ? 2 : 4;
  const double arriving = several ? 2 * mine.low : 0;  // a micro-batch's own, before they join the sums of those before it
  const double whole = number * mine.trains;
  Gradients out;
  out.parts = number * mine.part;
  if (layout.mesh.readers() * layout.mesh.degree(Axis::cp) == 1) {
    return {whole, several ? whole : 0, whole + arriving, 0};
  }
  const bool leave = config.distributed.reduce_each_micro && divided(layout) && layout.zero_stage >= 2;
  const double block = mine.largest_block(&Unit::numbers, layers), rest = mine.rest(&Unit::numbers, layers);
  const double left = !several ? 0 : leave ? out.parts : whole;
  out.before = left;
  const double blocks = config.distributed.prefetch ? 2 : 1;  // one is summed while the one before it gets its own
  out.end = std::max(several && !leave ? whole : 0, std::min(whole + out.parts, out.parts + number * (blocks * block + rest))) + arriving;
  out.buffers = travels * std::min(std::max(block, rest), std::max(kPiece, mine.longest));
  return out;
}

}  // namespace

double MemoryEstimate::total() const { return sum(parts); }

double MemoryEstimate::of(const std::string& part) const {
  const auto found = std::find_if(parts.begin(), parts.end(), [&](const auto& one) { return one.first == part; });
  return found == parts.end() ? 0 : found->second;
}

void MemoryEstimate::take_fuller(std::string other_moment, Amounts other_parts) {
  if (sum(other_parts) > total()) {
    moment = std::move(other_moment);
    parts = std::move(other_parts);
  }
}

MemoryEstimate MemoryEstimate::finished() && {
  std::erase_if(parts, [](const auto& part) { return part.second < 1; });
  return std::move(*this);
}

double in_flight(const config::DistributedConfig& distributed, const Layout& layout, std::int64_t stage, double micros) {
  const auto stages = static_cast<double>(layout.mesh.degree(Axis::pp));
  if (stages == 1) {
    return 1;
  }
  const double behind = stages - static_cast<double>(stage);  // stages from this one on
  if (distributed.pp_schedule == "gpipe") {
    return micros;
  }
  if (distributed.pp_schedule == "zero_bubble") {  // gradients of weights come later, on late stages most
    return std::min(micros, stages);
  }
  if (distributed.pp_schedule != "interleaved_1f1b") {
    return std::min(micros, behind);
  }
  const auto chunks = static_cast<double>(distributed.pp_chunks);
  const double warm = 2 * (behind - 1) + (chunks - 1) * stages + 1;  // pieces of micro-batches before the first backward
  return std::min(micros, warm / chunks);
}

MemoryEstimate rank_memory(const config::Config& config, const Weights& weights, const Layout& layout, std::int64_t stage) {
  const Rank rank(config, weights, layout, stage);
  const Holdings& mine = rank.held();
  const std::int64_t layers = config.model.n_layers;
  const Micro micro = largest_micro(config);
  const double micros = static_cast<double>(config::BatchPlan(config.train, layout.mesh.readers()).micros(0));
  const bool several = micros > 1 || !config.train.batch_schedule.empty();
  const config::ActivationBytes activations = stage_activations(config, weights, layout, stage, micro, true);
  const double under_way = in_flight(config.distributed, layout, stage, micros);
  const Gradients gradients = gradients_of(config, layout, mine, several);
  const bool gathers = divided(layout) && layout.zero_stage == 3;
  const double gathered =
      gathers ? mine.rest(&Unit::cut, layers) + (config.distributed.prefetch ? 2 : 1) * mine.largest_block(&Unit::cut, layers) : 0;
  const Amounts base{{"weights", mine.weights},
                     {"16-bit weights", mine.copies},
                     {"optimizer (" + config.optimizer.name + ")", mine.state},
                     {"outer weights (diloco)", config.diloco.interval > 0 ? 8 * mine.part : 0}};  // and their momentum, in fp32
  const auto with = [&](Amounts more) {
    more.insert(more.begin(), base.begin(), base.end());
    return more;
  };
  const double update = 4 * mine.part * rank.copies() + (rank.by_tensor() ? 4 * kTensorCopies * mine.largest : 0);
  MemoryEstimate out;
  out.complete = weights.known;
  out.take_fuller("backward", with({{"gathered weights", gathered},
                                    {"gradients", gradients.before},
                                    {"activations", under_way * activations.kept},
                                    {"logits", activations.logits}}));
  out.take_fuller("backward", with({{"gathered weights", gathered},
                                    {"gradients", gradients.end},
                                    {"buffers", gradients.buffers},
                                    {"activations", (under_way - 1) * activations.kept + activations.passing}}));
  out.take_fuller("the update", with({{"gradients", gradients.parts}, {"the update itself", update}}));
  if (config.eval.enabled) {
    const double rows = config.eval.batch_size > 0 ? static_cast<double>(config.eval.batch_size) : micro.rows;
    const config::ActivationBytes evaluation =
        stage_activations(config, weights, layout, stage, {rows, static_cast<double>(config.train.seq_len)}, false);
    const double swapped = config.averaging.type != "none" ? 4 * mine.part : 0;
    const double all = gathers ? mine.rest(&Unit::cut, layers) : 0;
    out.take_fuller("an evaluation", with({{"gathered weights", all},
                                           {"averaged weights", swapped},
                                           {"activations", evaluation.passing},
                                           {"logits", evaluation.logits}}));
  }
  return std::move(out).finished();
}

MemoryEstimate ranks_together(const config::Config& config, const Weights& weights, const Layout& layout, const RankRange& ranks) {
  std::map<std::int64_t, double> by_stage;  // how many ranks of it
  for (std::int64_t rank = ranks.first; rank < ranks.first + ranks.count; ++rank) {
    by_stage[layout.mesh.coordinate(rank, Axis::pp)] += 1;
  }
  MemoryEstimate out;
  double most = 0;
  for (const auto& [stage, count] : by_stage) {
    const MemoryEstimate own = rank_memory(config, weights, layout, stage);
    for (const auto& [name, bytes] : own.parts) {
      const auto same = std::find_if(out.parts.begin(), out.parts.end(), [&part = name](const auto& one) { return one.first == part; });
      if (same != out.parts.end()) {
        same->second += count * bytes;
      } else {
        out.parts.emplace_back(name, count * bytes);
      }
    }
    out.moment = own.total() > most ? own.moment : out.moment;
    most = std::max(most, own.total());
    out.complete = out.complete && own.complete;
  }
  return out;
}

MemoryEstimate fullest_rank(const config::Config& config, const Weights& weights, const Layout& layout) {
  MemoryEstimate out;
  std::set<Composition> seen;  // of equal stages the first one has most micro-batches under way
  for (std::int64_t stage = 0; stage < layout.mesh.degree(Axis::pp); ++stage) {
    if (!seen.insert(composition_of(weights, layout, stage)).second) {
      continue;
    }
    MemoryEstimate own = rank_memory(config, weights, layout, stage);
    if (own.total() > out.total()) {
      out = std::move(own);
    }
  }
  return out;
}

}  // namespace kf::plan
