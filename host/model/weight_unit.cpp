#include "model/weight_unit.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "core/error.h"
#include "model/module.h"

namespace kf {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

/// The parts of some weights of one type, one behind the other: those of rank 0, of rank 1, ... So one call moves them all.
class Flat {
 public:
  Flat(const ParameterList& weights, const Group& shards, at::ScalarType type) : weights_(weights), rank_(shards.rank()) {
    for (std::int64_t rank = 0; rank < shards.size(); ++rank) {
      rows_.push_back(0);
      for (const ParameterPtr& weight : weights) {
        rows_.back() += weight->rows_of(rank).numel();
      }
      total_ += rows_.back();
    }
    options_ = weights.front()->master.options().requires_grad(false).dtype(type);
  }

  const std::vector<std::int64_t>& rows() const { return rows_; }
  at::Tensor all() const { return at::empty({total_}, options_); }
  at::Tensor mine() const { return at::empty({rows_[static_cast<std::size_t>(rank_)]}, options_); }

  /// Calls visit(weight, range, piece) for each part of `rank`; `flat` holds those of that rank, `piece` is the part's place in it.
  template <class Visit>
  void each_part(std::int64_t rank, const at::Tensor& flat, const Visit& visit) const {
    std::int64_t at = 0;
    for (const ParameterPtr& weight : weights_) {
      const Range range = weight->rows_of(rank);
      visit(*weight, range, flat.narrow(0, at, range.numel()).view(range.size));
      at += range.numel();
    }
  }
  /// The same for all ranks and `flat` of all.
  template <class Visit>
  void each(const at::Tensor& flat, const Visit& visit) const {
    std::int64_t at = 0;
    for (std::size_t rank = 0; rank < rows_.size(); ++rank) {
      each_part(static_cast<std::int64_t>(rank), flat.narrow(0, at, rows_[rank]), visit);
      at += rows_[rank];
    }
  }

 private:
  const ParameterList& weights_;
  std::int64_t rank_;
  std::vector<std::int64_t> rows_;
  std::int64_t total_ = 0;
  at::TensorOptions options_;
};

/// The same storage without its history: what is written here is no change that autograd would refuse.
at::Tensor untracked(const at::Tensor& value) { return value.variable_data(); }

/// Gives the memory of a tensor back, or takes it again. The tensor and all that a graph has kept of it stay what they are.
void resize_storage(const at::Tensor& tensor, bool full) {
  c10::StorageImpl* const storage = tensor.storage().unsafeGetStorageImpl();
  const std::size_t bytes = full ? static_cast<std::size_t>(tensor.numel()) * tensor.element_size() : 0;
  if (storage->nbytes() == bytes) {
    return;
  }
  storage->set_data_ptr_noswap(storage->allocator()->allocate(bytes));
  storage->set_nbytes(bytes);
}

/// Whether other ranks along ep hold other experts: its rows lie on those alone that hold the same ones.
bool is_experts(const Parameter& weight) {
  return std::any_of(weight.placement.cuts.begin(), weight.placement.cuts.end(), [](const Cut& cut) { return cut.axis == Axis::ep; });
}

/// Those that one call can move: of one type, over the same ranks.
std::map<std::pair<bool, at::ScalarType>, ParameterList> by_way(const ParameterList& weights) {
  std::map<std::pair<bool, at::ScalarType>, ParameterList> out;
  for (const ParameterPtr& weight : weights) {
    out[{is_experts(*weight), weight->value.scalar_type()}].push_back(weight);
  }
  return out;
}

}  // namespace

/// The identity, with something to do when backward comes by.
struct WeightUnit::Node : torch::autograd::Function<WeightUnit::Node> {
  struct Held : torch::CustomClassHolder {
    explicit Held(WeightUnit* whole) : unit(whole) {}
    WeightUnit* unit;
  };
  static Variable forward(AutogradContext* context, const Variable& x, WeightUnit* unit, bool at_start) {
    context->saved_data["unit"] = c10::IValue::make_capsule(c10::make_intrusive<Held>(unit));
    context->saved_data["at_start"] = at_start;
    return x.view_as(x);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    WeightUnit* const unit = c10::static_intrusive_pointer_cast<Held>(context->saved_data["unit"].toCapsule())->unit;
    if (context->saved_data["at_start"].toBool()) {
      unit->gather();
    } else {
      unit->end_micro();
    }
    return {gradients[0], Variable(), Variable()};
  }
};

WeightUnit::WeightUnit(ParameterList weights, const World& world, ZeroStage stage)
    : weights_(std::move(weights)),
      data_(world.data()),
      shards_(world.shards()),
      expert_shards_(world.expert_shards()),
      replicas_(world.along(Axis::dp_replicate)),
      stage_(shards() ? stage : ZeroStage::moments) {
  for (const ParameterPtr& weight : weights_) {
    weight->unit = this;
  }
  whole_ = stage_ != ZeroStage::weights;
}

at::Tensor WeightUnit::run(const at::Tensor& x, const Body& body) {
  if (stage_ == ZeroStage::moments || uses_ > 0) {
    return body(x);
  }
  gather();
  const bool tracked = at::GradMode::is_enabled();
  const at::Tensor in = tracked && x.requires_grad() ? Node::apply(x, this, false) : x;
  at::Tensor out = body(in);
  if (tracked && out.requires_grad()) {
    out = Node::apply(out, this, true);
  }
  release();
  return out;
}

void WeightUnit::begin_use() {
  gather();
  ++uses_;
}

void WeightUnit::end_use() {
  if (--uses_ == 0) {
    release();
  }
}

void WeightUnit::gather() {
  if (whole_) {
    return;
  }
  for (const ParameterPtr& weight : weights_) {
    if (weight->placement.rows() != nullptr) {
      const Range held = weight->held();
      if (weight->value.numel() != held.numel()) {  // of an earlier step no graph is left: a new leaf
        weight->value = at::empty(held.size, weight->value.options().requires_grad(false)).set_requires_grad(weight->trains());
      } else {
        resize_storage(weight->value, true);
      }
    }
  }
  whole_ = true;
  publish();
}

/// Keeps the leaf: a graph that has it goes on when it is gathered again.
void WeightUnit::release() {
  if (stage_ != ZeroStage::weights || uses_ > 0 || !whole_) {
    return;
  }
  for (const ParameterPtr& weight : weights_) {
    if (weight->placement.rows() != nullptr) {
      resize_storage(weight->value, false);
    }
  }
  whole_ = false;
}

void WeightUnit::publish() {
  const at::NoGradGuard no_grad;
  ParameterList cut;
  for (const ParameterPtr& weight : weights_) {
    if (weight->placement.rows() == nullptr) {
      weight->publish_whole();
    } else if (whole_) {
      cut.push_back(weight);
    }
  }
  for (const auto& [way, weights] : by_way(cut)) {
    gather_values(weights);
  }
}

Group& WeightUnit::shards_of(const Parameter& weight) const { return is_experts(weight) ? expert_shards_ : shards_; }

void WeightUnit::sum_over_holders(const Parameter& weight, const at::Tensor& t) const {
  if (is_experts(weight)) {
    expert_shards_.sum(t);
    replicas_.sum(t);
  } else {
    data_.sum(t);
  }
}

void WeightUnit::gather_values(const ParameterList& weights) const {
  Group& shards = shards_of(*weights.front());
  const Flat flat(weights, shards, weights.front()->value.scalar_type());
  const at::Tensor all = flat.all(), mine = flat.mine();
  flat.each_part(shards.rank(), mine,
                 [](Parameter& weight, const Range&, const at::Tensor& piece) { piece.copy_(weight.master.detach()); });
  shards.gather(all, mine, flat.rows());
  flat.each(all, [](Parameter& weight, const Range& range, const at::Tensor& piece) {
    if (range.numel() > 0) {
      range.of(untracked(weight.value)).copy_(piece);
    }
  });
}

/// Weights that have a gradient on any rank and a part here; where it is missing here, it is 0.
ParameterList WeightUnit::with_gradient() const {
  ParameterList trained;
  std::copy_if(weights_.begin(), weights_.end(), std::back_inserter(trained), [](const ParameterPtr& weight) { return weight->trains(); });
  if (trained.empty()) {
    return {};
  }
  const at::Tensor any = at::zeros({static_cast<std::int64_t>(trained.size())}, at::kByte);
  for (std::size_t i = 0; i < trained.size(); ++i) {
    trained[i]->accumulate();
    any.mutable_data_ptr<std::uint8_t>()[i] = trained[i]->local_gradient().defined() ? 1 : 0;
  }
  data_.largest(any);
  ParameterList out;
  for (std::size_t i = 0; i < trained.size(); ++i) {
    if (any.const_data_ptr<std::uint8_t>()[i] != 0 && trained[i]->held().numel() > 0) {
      out.push_back(trained[i]);
    }
  }
  return out;
}

void WeightUnit::reduce() {
  if (data_.size() == 1) {
    return;
  }
  const at::NoGradGuard no_grad;
  std::array<ParameterList, 2> cut, whole;  // experts behind the others
  for (const ParameterPtr& weight : with_gradient()) {
    (weight->placement.rows() == nullptr ? whole : cut).at(is_experts(*weight) ? 1 : 0).push_back(weight);
  }
  for (std::size_t kind = 0; kind < cut.size(); ++kind) {
    if (!cut.at(kind).empty()) {
      reduce_cut(cut.at(kind));
    }
    if (!whole.at(kind).empty()) {
      reduce_whole(whole.at(kind));
    }
  }
}

void WeightUnit::reduce_cut(const ParameterList& weights) const {
  Group& shards = shards_of(*weights.front());
  const Flat flat(weights, shards, at::kFloat);
  const at::Tensor mine = flat.mine();
  {
    const at::Tensor all = flat.all();
    flat.each(all, [](Parameter& weight, const Range& range, const at::Tensor& piece) {
      const at::Tensor gradient = weight.local_gradient();
      gradient.defined() ? piece.copy_(range.of(gradient)) : piece.zero_();
    });
    for (const ParameterPtr& weight : weights) {
      weight->clear_local_gradient();
    }
    shards.scatter_sum(mine, all, flat.rows());
  }
  replicas_.sum(mine);
  flat.each_part(shards.rank(), mine, [](Parameter& weight, const Range& range, const at::Tensor& piece) {
    if (range.numel() == 0) {
      return;  // the weight is another rank's
    }
    if (weight.part_gradient.defined()) {
      weight.part_gradient.add_(piece);
    } else {
      weight.part_gradient = piece.to(weight.sum_type);  // a view of `mine` in fp32
    }
  });
}

/// The sum over those that hold the same, in pieces of bounded size.
void WeightUnit::reduce_whole(const ParameterList& weights) const {
  constexpr std::int64_t kMost = 8 << 20;  // numbers
  for (std::size_t first = 0; first < weights.size();) {
    std::vector<at::Tensor> gradients;
    for (std::int64_t count = 0; first < weights.size() && (count == 0 || count + weights[first]->held().numel() <= kMost); ++first) {
      Parameter& weight = *weights[first];
      if (!weight.local_gradient().defined()) {
        weight.zero_gradient();
      }
      gradients.push_back(weight.local_gradient());
      count += weight.held().numel();
    }
    std::vector<at::Tensor> rows;
    for (const at::Tensor& gradient : gradients) {
      rows.push_back(gradient.to(at::kFloat).flatten());
    }
    const at::Tensor flat = at::cat(rows);
    sum_over_holders(*weights.front(), flat);
    std::int64_t at = 0;
    for (const at::Tensor& gradient : gradients) {
      gradient.copy_(flat.narrow(0, at, gradient.numel()).view_as(gradient));
      at += gradient.numel();
    }
  }
}

void WeightUnit::rest() {
  if (stage_ == ZeroStage::weights && uses_ == 0) {
    release();
    for (const ParameterPtr& weight : weights_) {
      if (weight->placement.rows() != nullptr) {
        weight->value = at::empty({0}, weight->value.options().requires_grad(false));
      }
    }
  }
}

void WeightUnit::end_micro() {
  if (stage_ != ZeroStage::moments) {
    reduce();
    release();
  }
}

std::vector<std::shared_ptr<WeightUnit>> units_of(const Module& model) {
  std::vector<std::shared_ptr<WeightUnit>> out;
  if (model.unit() != nullptr) {
    out.push_back(model.unit());
  }
  for (const auto& [name, child] : model.children()) {
    const std::vector<std::shared_ptr<WeightUnit>> below = units_of(*child);
    out.insert(out.end(), below.begin(), below.end());
  }
  return out;
}

WholeWeights::WholeWeights(const Module& model) : units_(units_of(model)) {
  for (const auto& unit : units_) {
    unit->begin_use();
  }
}

WholeWeights::~WholeWeights() {
  for (const auto& unit : units_) {
    unit->end_use();
    unit->rest();
  }
}

void publish(const ParameterList& weights) {
  std::set<WeightUnit*> units;
  const at::NoGradGuard no_grad;
  for (const ParameterPtr& weight : weights) {
    if (weight->unit == nullptr) {
      weight->publish_whole();
    } else if (units.insert(weight->unit).second) {
      weight->unit->publish();
    }
  }
}

}  // namespace kf
