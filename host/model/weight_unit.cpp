#include "model/weight_unit.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "model/module.h"

namespace kf {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

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

/// Weights that have a cut along ep are divided over other ranks.
bool is_experts(const Parameter& weight) {
  const auto& cuts = weight.placement.cuts;
  return std::any_of(cuts.begin(), cuts.end(), [](const Cut& cut) { return cut.axis == Axis::ep; });
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
    context->saved_data["at_start"].toBool() ? unit->backward_begins() : unit->backward_ends();
    return {gradients[0], Variable(), Variable()};
  }
};

WeightUnit::WeightUnit(ParameterList weights, const World& world, std::shared_ptr<UnitLine> line)
    : weights_(std::move(weights)), line_(std::move(line)), shards_(world.shards()), expert_shards_(world.expert_shards()) {
  line_->append(*this);
  for (const ParameterPtr& weight : weights_) {
    weight->unit = this;
  }
  whole_ = !divides_weights();
}

at::Tensor WeightUnit::run(const at::Tensor& x, const Body& body) {
  if (uses_ > 0) {
    return body(x);
  }
  const bool prefetch = line_->options().prefetch;
  gather();
  if (WeightUnit* const next = line_->next(*this); next != nullptr && prefetch) {
    next->begin_gather();
  }
  const bool tracked = at::GradMode::is_enabled();
  at::Tensor in = x;
  if (tracked && x.requires_grad()) {
    in = Node::apply(x, this, false);
    ++open_;
  }
  at::Tensor out = body(in);
  const bool returns = tracked && out.requires_grad() && divides_weights();
  if (returns) {
    out = Node::apply(out, this, true);
    ++awaited_;
  }
  if (!returns || !prefetch || !line_->ends_with(*this)) {
    release();
  }
  return out;
}

void WeightUnit::backward_begins() {
  gather();
  --awaited_;
  WeightUnit* const previous = line_->previous(*this);
  if (previous != nullptr && previous->awaited_ > 0 && line_->options().prefetch) {
    previous->begin_gather();
  }
}

void WeightUnit::backward_ends() {
  if (--open_ == 0) {
    line_->complete(*this);
  }
  release();
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

/// The values of weights that are cut, of one group of ranks and one type at a time.
void WeightUnit::begin_values() {
  std::map<std::pair<bool, at::ScalarType>, ParameterList> alike;
  for (const ParameterPtr& weight : weights_) {
    if (weight->placement.rows() != nullptr) {
      alike[{is_experts(*weight), weight->value.scalar_type()}].push_back(weight);
    }
  }
  for (const auto& [kind, weights] : alike) {
    under_way_.push_back(std::make_unique<Gathering>(weights, kind.first ? expert_shards_ : shards_));
  }
}

void WeightUnit::end_values() {
  for (const auto& gathering : under_way_) {
    gathering->finish();
  }
  under_way_.clear();
}

void WeightUnit::begin_gather() {
  if (!whole_ && under_way_.empty()) {
    begin_values();
  }
}

void WeightUnit::gather() {
  if (whole_) {
    return;
  }
  begin_gather();
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
  end_values();
}

/// Keeps the leaf: a graph that has it goes on when it is gathered again.
void WeightUnit::release() {
  if (!divides_weights() || uses_ > 0 || !whole_) {
    return;
  }
  for (const ParameterPtr& weight : weights_) {
    if (weight->placement.rows() != nullptr) {
      resize_storage(weight->value, false);
    }
  }
  whole_ = false;
}

void WeightUnit::begin_publish() {
  for (const ParameterPtr& weight : weights_) {
    if (weight->placement.rows() == nullptr) {
      weight->publish_whole();
    }
  }
  if (whole_) {
    begin_values();
  }
}

void WeightUnit::end_publish() { end_values(); }

void WeightUnit::each_bucket(const TakeBucket& take) const {
  constexpr std::int64_t kMost = 8 << 20;  // numbers
  for (const bool experts : {false, true}) {
    for (const bool cut : {true, false}) {
      ParameterList bucket;
      std::int64_t numbers = 0;
      for (const ParameterPtr& weight : weights_) {
        if (!weight->trains() || is_experts(*weight) != experts || (weight->placement.rows() != nullptr) != cut) {
          continue;
        }
        const std::int64_t own = weight->held().numel();
        if (!bucket.empty() && numbers + own > kMost) {
          take(std::exchange(bucket, {}), cut, experts);
          numbers = 0;
        }
        bucket.push_back(weight);
        numbers += own;
      }
      if (!bucket.empty()) {
        take(std::move(bucket), cut, experts);
      }
    }
  }
}

void WeightUnit::rest() {
  awaited_ = open_ = 0;  // of the graphs of a step nothing is left
  for (const auto& gathering : under_way_) {
    gathering->discard();  // begun and not used, on all ranks alike
  }
  under_way_.clear();
  if (divides_weights() && uses_ == 0) {
    release();
    for (const ParameterPtr& weight : weights_) {
      if (weight->placement.rows() != nullptr) {
        weight->value = at::empty({0}, weight->value.options().requires_grad(false));
      }
    }
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

UnitLine* line_of(const Module& model) { return model.unit() != nullptr ? &model.unit()->line() : nullptr; }

/// The values of a unit travel while those of the unit before it are written.
void publish(const ParameterList& weights) {
  std::set<WeightUnit*> seen;
  WeightUnit* before = nullptr;
  const at::NoGradGuard no_grad;
  for (const ParameterPtr& weight : weights) {
    if (weight->unit == nullptr) {
      weight->publish_whole();
    } else if (seen.insert(weight->unit).second) {
      weight->unit->begin_publish();
      if (before != nullptr) {
        before->end_publish();
      }
      before = weight->unit;
    }
  }
  if (before != nullptr) {
    before->end_publish();
  }
}

}  // namespace kf
