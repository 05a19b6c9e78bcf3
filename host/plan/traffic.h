#pragma once
// What the ranks of a layout send each other in a step: how much, along which axis, over which link.

#include <string>
#include <vector>

#include "config/plan/weights.h"
#include "config/schema/config.h"
#include "plan/gpu.h"
#include "plan/links.h"

namespace kf::plan {

/// Calls of one kind of one group.
struct Flow {
  enum class Kind : std::int8_t { gather, scatter_sum, sum, exchange, send };
  /// When a rank waits for it. blocking: where it stands; hidden: it runs beside computation, and a rank waits for what is left.
  enum class When : std::int8_t { forward, backward, hidden_forward, hidden_backward, hidden_attention, update };

  std::string axis;  // "tp", "dp_shard", ...
  std::string what;  // "weights gathered"
  Kind kind = Kind::gather;
  When when = When::forward;
  double calls = 0;
  double bytes = 0;  // of one call: all ranks' parts together, what is summed, or what this rank sends (exchange, send)
  Reach reach;

  /// Bytes that leave a rank in all calls: (n - 1) / n of a gather, of a sum of which each keeps a part, and of an exchange; twice that of
  /// a sum that all get; all of a send.
  double sent() const;
  double seconds(const Gpu& gpu) const;
};

/// How far the ranks of the groups of a stage's rank are apart; `pp` has it and the next stage's, `ends` the first and the last stage's.
struct Reaches {
  Reach tp, cp, ep, pp, ends, shards, expert_shards, replicas;
  static Reaches of(const Mesh& mesh, std::int64_t node, std::int64_t stage);
};

/// The messages of the steps of a stage's rank.
class Traffic {
 public:
  /// All live longer than this.
  Traffic(const config::Config& config, const Weights& weights, const Layout& layout, const Reaches& reaches, std::int64_t stage);

  /// Of one micro-batch in one piece of the model.
  std::vector<Flow> of_micro(const config::Stage& piece) const;
  /// Once a step, on a rank of this stage.
  std::vector<Flow> of_step() const;
  /// A micro-batch's hidden states from one piece to the next.
  Flow handed_on() const;

 private:
  void add_tensor(std::vector<Flow>& out, const config::Stage& piece) const;
  void add_around_experts(std::vector<Flow>& out, double layers, bool again) const;
  void add_context(std::vector<Flow>& out, const config::Stage& piece) const;
  void add_experts(std::vector<Flow>& out, const config::Stage& piece) const;
  void add_gathered(std::vector<Flow>& out, const config::Stage& piece) const;
  void add_reduced(std::vector<Flow>& out) const;
  void add_ends(std::vector<Flow>& out) const;
  void add_workers(std::vector<Flow>& out) const;

  const config::Config& config_;
  const Weights& weights_;
  const Layout& layout_;
  std::int64_t stage_;
  const Reaches& reaches_;
  double width_, tokens_, micros_;
};

/// All of a step on a rank of a stage: those of its micro-batches and pieces, and those that come once.
std::vector<Flow> step_flows(const config::Config& config, const Weights& weights, const Layout& layout, std::int64_t node,
                             std::int64_t stage);

/// Bytes that leave a rank along an axis.
double sent_along(const std::vector<Flow>& flows, const std::string& axis);

}  // namespace kf::plan
