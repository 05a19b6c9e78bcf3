#pragma once
// DiLoCo: workers that train apart, and exchange what they learned every now and then (Douillard et al. 2023, "DiLoCo", algorithm 1).

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "config/schema/config.h"
#include "optim/wrapped_optimizer.h"
#include "parallel/group.h"
#include "parallel/meeting.h"

namespace kf {

/// Tensors of a checkpoint that are the same for all workers: "diloco.outer.NAME", "diloco.momentum.NAME". What else a worker keeps is its
/// own: that of worker 1 and the next ones is saved under "worker1.SLOT.NAME", their weights as "worker1.diloco.weight.NAME".
inline constexpr const char* kOuterPrefix = "diloco.outer.";
inline constexpr const char* kOuterMomentumPrefix = "diloco.momentum.";
inline constexpr const char* kWorkerWeightPrefix = "diloco.weight.";
bool is_of_all_workers(const std::string& name);
/// The name in a checkpoint of what `worker` calls `name`.
std::string worker_name(const std::string& name, std::int64_t worker);

/// The inner optimizer moves a worker's weights, with gradients of that worker alone. Every `interval` updates of the run
///   d = mean over workers of (outer - weights),
///   m = momentum * m + d,   outer -= lr * (nesterov ? d + momentum * m : m)
/// and all workers go on from the outer weights. The inner optimizer's state stays the worker's. Outer weights and m are fp32; they begin
/// as the weights before the first update, and 0. Buffers that the model moves itself become their mean.
///
/// Differences travel as exchange_dtype: bf16 is added up in fp32 and rounded once; int8 in blocks of 64 numbers, of weights one behind
/// the other, with the fp32 scale max |d| / 127, each rounded to the nearest, and added up in fp32. What rounding loses is lost: it is not
/// carried on to the next exchange.
class Diloco final : public WrappedOptimizer {
 public:
  /// `workers`: those that hold the same weights, one rank of each; outlives it.
  Diloco(std::unique_ptr<Optimizer> inner, const ParameterList& parameters, const config::DilocoConfig& config, Group& workers);

  void step(double lr) override;
  /// After an update of the run, number `step`, whether or not this worker has moved its weights in it: exchanges where it is time. What
  /// forward reads follows.
  void end_update(std::int64_t step);

  /// Workers come and go from now on: exchanges are over those who come to `meeting`, which outlives it. `workers` is this one alone then.
  /// An exchange that a stop has left out is made up for, behind update `step`.
  void use(Meeting& meeting, std::int64_t step);
  WorkerProgress progress(std::int64_t step) const { return {step, exchanges_, mark_}; }
  /// What else a run keeps that its workers have in common, as a text.
  using Kept = std::function<std::string()>;
  /// Of rank 0 of `group` the outer weights, their momentum, buffers and what the inner optimizer keeps; the others take it, and go on from
  /// the outer weights. Gives what `kept` of rank 0 says.
  std::string carry(Group& group, const Kept& kept);
  /// To workers that came back to the last exchange, if any did: its state, once what hooks asked for behind that update is in force.
  void hand_on(const Kept& kept);
  /// Workers of the last exchange.
  std::int64_t present() const;

  OptimizerState state() const override;
  void load(const OptimizerState& state) override;

  Group& workers() const { return workers_; }

 private:
  void start() const;
  at::Tensor mean(const at::Tensor& difference, Group& workers) const;
  std::vector<std::vector<std::size_t>> bundles() const;
  at::Tensor mean_of(const std::vector<std::size_t>& bundle, Group& workers) const;
  void move(const std::vector<std::size_t>& bundle, const at::Tensor& all);
  std::vector<std::pair<at::Tensor, at::Tensor>> buffer_means(Group& workers) const;
  void exchange(std::int64_t step);
  OptimizerState shared_state() const;
  void put_numbers(OptimizerState& state) const;
  void take_outer(const OptimizerState& state);

  ParameterList parameters_, buffers_;
  config::DilocoConfig config_;
  Group& workers_;
  Meeting* meeting_ = nullptr;  // null where all workers are always there
  std::int64_t exchanges_ = 0, mark_ = 0;
  bool pending_ = false;                              // the run was stopped where an exchange was due
  bool owes_ = false;                                 // those that came back to the last exchange wait for its state
  mutable std::vector<at::Tensor> outer_, momentum_;  // of the parts that lie here; empty until they are first asked for
};

/// As int8 with an fp32 scale for each 64 numbers; the last block may be shorter.
struct QuantizedBlocks {
  at::Tensor numbers;  // (N) int8
  at::Tensor scales;   // (ceil(N / 64)) fp32
};
inline constexpr std::int64_t kQuantizedBlock = 64;
QuantizedBlocks quantize_blocks(const at::Tensor& numbers);
/// (N) fp32.
at::Tensor widen_blocks(const QuantizedBlocks& blocks);

}  // namespace kf
