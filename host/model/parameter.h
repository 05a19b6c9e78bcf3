#pragma once
// One named weight: its shape and init rule, the tensor that forward reads, and the fp32 copy that the optimizer moves.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/placement.h"

namespace kf {

class WeightUnit;

/// How a fresh weight is filled. Normal draws are functions of (seed, parameter name, element), so they do not depend on the order of
/// construction, on threads or on the parallel layout.
struct Init {
  enum class Kind { normal, ones, zeros, truncated, constant, given, uniform };
  Kind kind = Kind::normal;
  double std = 0.02;       // normal, truncated: the standard deviation; constant: the value; uniform: the bound
  at::Tensor values = {};  // given only

  static Init normal(double std) { return {Kind::normal, std}; }
  /// A normal cut at two deviations, widened so that what is left has deviation `std`.
  static Init truncated(double std) { return {Kind::truncated, std}; }
  /// Between -bound and bound.
  static Init uniform(double bound) { return {Kind::uniform, bound}; }
  /// These values, of the parameter's shape.
  static Init given(at::Tensor values) { return {Kind::given, 0, std::move(values)}; }
  static Init ones() { return {Kind::ones, 0}; }
  static Init zeros() { return {Kind::zeros, 0}; }
  static Init constant(double value) { return {Kind::constant, value}; }
};

/// What a weight is for: decides who updates it (Muon takes hidden matrices) and how it is reported.
enum class Role { embedding, hidden, head, router, vector };

/// How a weight is divided over the ranks of tensor parallelism: colwise its outputs (dim 0), rowwise its inputs (dim 1), vocab its rows of
/// the vocabulary (dim 0); whole, over a split sequence; whole. experts: its experts (dim 0), over the ranks of expert parallelism.
enum class Split { colwise, rowwise, sequence, replicate, vocab, experts };
/// As scripts write the first ones, in this order.
inline constexpr std::string_view kSplitNames[] = {"colwise", "rowwise", "sequence", "replicate"};

/// One tensor of a state dict, and which part of a parameter it shows.
struct StoredView {
  std::string name;
  std::int64_t slice = -1;  // along dim 0; -1 for all of it
  bool transposed = false;  // the last two dims swapped

  std::vector<std::int64_t> shape(const std::vector<std::int64_t>& whole) const;
  at::Tensor of(const at::Tensor& whole) const;  // a view
};

/// A stack of matrices (E, out, in), or of vectors (E, out), one an expert, which files know in two forms: as one tensor (E, in, out), or
/// as one tensor an expert, (out, in). Both are read; checkpoints hold the chosen one.
struct StackNames {
  std::string packed;  // "gate_w", the last word of the parameter's own name
  std::string each;    // "experts.{}.gate_proj.weight" beside it, {} is the expert
  bool write_packed = false;
};

/// A weight. `value` and `master` are undefined until `Model::materialize`.
struct Parameter {
  std::string name;                 // the state-dict name: "layers.0.attention.q_proj.weight"
  std::vector<std::int64_t> shape;  // global shape
  Init init;
  Role role = Role::hidden;
  bool trainable = true;
  bool buffer = false;     // moved by the model's own rule: no gradient, never the optimizer's, whatever the masks say
  bool counted = true;     // part of parameter counts; a buffer that is not may be missing in files, and then starts fresh
  bool added = false;      // by an adapter: files of the model itself lack it, and it then starts fresh
  bool keep_fp32 = false;  // `value` is fp32 whatever the compute type
  std::optional<StackNames> stack;
  Split split = Split::replicate;  // by the layer that has it
  std::int64_t split_unit = 1;     // entries of the divided dim that stay together: the numbers of a head
  bool split_hint = false;         // a script said so
  bool next_follows = false;       // the next weight reads the same input: its values lie behind these in memory (kf::stacked)

  Placement placement;  // the part of it that this rank trains
  bool first = true;    // whether this rank is the first of those of a replica that train the same part: who counts it
  /// The optimizer needs it whole where tp divides it: one of those ranks updates it, and has the optimizer's state of all of it.
  enum class Gathered : std::int8_t { no, here, elsewhere };
  Gathered gathered = Gathered::no;
  WeightUnit* unit = nullptr;  // with which it is gathered and reduced; null on one rank

  at::Tensor value;          // read by forward; a leaf that requires grad; compute type; all that this rank holds (`held`)
  at::Tensor master;         // this rank's part in fp32, or bf16 by train.param_dtype; the same memory where the types are the same;
                             // undefined where they are not and nothing trains
  mutable at::Tensor sum;    // gradient over the micro-batches, where it is not summed in `value`'s own type; that of one of them stays in
                             // the value's type until somebody asks for it in `sum_type`
  at::Tensor part_gradient;  // of a weight that is cut: that of this rank's part, over all ranks (WeightUnit::reduce)
  at::ScalarType sum_type = at::kFloat;  // of gradients, train.grad_dtype

  bool unfilled = false;  // storage without values: no draws were made, because a file is to follow

  std::int64_t numel() const;
  /// Whether it stays as it is for the whole run. (What hooks and phases freeze for a while is not.)
  bool is_frozen() const { return !trainable && !buffer; }
  /// What checkpoints hold: the master, or where there is none the value, which never moves.
  const at::Tensor& kept() const { return master.defined() ? master : value; }
  /// The tensors that stand for it in a checkpoint: itself, or the slices of a stack.
  std::vector<StoredView> stored() const;
  /// Every form in which files may hold it; the first is `stored()`.
  std::vector<std::vector<StoredView>> forms() const;
  /// Whether forward reads 16-bit numbers.
  bool is_low() const { return value.defined() && c10::isReducedFloatingType(value.scalar_type()); }
  /// Which part of it forward reads on this rank.
  Range held() const { return placement.held(shape); }
  /// Which part of that, seen from inside of it, rank `rank` trains of those along dp_shard.
  Range rows_of(std::int64_t rank) const;
  /// Of this rank's part; 0 where it is another's.
  std::int64_t part_numel() const { return placement.of(shape).numel(); }
  /// The gradient of this step in `sum_type`, shaped as `master`; undefined when nothing flowed here, or the weight is another rank's.
  at::Tensor gradient() const { return placement.rows() == nullptr ? local_gradient() : part_gradient; }
  /// The same numbers as they lie, in a type that may be narrower: for what reads them in any.
  at::Tensor stored_gradient() const { return placement.rows() != nullptr ? part_gradient : sums_apart() ? sum : value.grad(); }
  /// What backward has left on this rank, of all that it holds.
  at::Tensor local_gradient() const { return sums_apart() ? summed() : value.grad(); }
  void zero_gradient();
  void clear_local_gradient();
  /// Whether it gets gradients at the moment: not what the job, a phase or a hook has frozen.
  bool trains() const { return trains_; }
  void set_trains(bool on);
  /// The same in fp32, for updates: itself, or a copy.
  at::Tensor wide_gradient() const;
  /// Replaces the whole gradient.
  void set_gradient(at::Tensor gradient);
  /// Moves what the last backward left on `value` into the sum, where that is apart.
  void accumulate();
  void clear_gradient();
  /// `value` was written together with the master: the next publish leaves it out, unless the master has moved again by then.
  void value_written();
  /// After `kept()` was written: makes `value` follow, that of a unit with its whole unit (kf::publish: of many weights).
  void publish();
  /// The same of a weight that this rank trains as it holds it.
  void publish_whole();

 private:
  /// Autograd sums in the type of `value`: low types would lose small terms, and fp32 is more than grad_dtype = "bf16" wants.
  bool sums_apart() const { return is_low() || sum_type != at::kFloat; }

  const at::Tensor& summed() const;

  bool trains_ = false;
  std::int64_t written_ = -1;  // the master's version when `value` was written with it, until the next publish
};

using ParameterPtr = std::shared_ptr<Parameter>;
using ParameterList = std::vector<ParameterPtr>;

/// `type` (fp32 or bf16) as the `sum_type` of all.
void sum_gradients_in(at::ScalarType type, const ParameterList& parameters);

}  // namespace kf
