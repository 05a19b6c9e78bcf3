#include "model/unit_line.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "model/weight_unit.h"

namespace kf {
namespace {

/// The same ranks with a communicator of their own.
std::unique_ptr<Group> again(Group& group) {
  std::vector<std::int64_t> everyone(static_cast<std::size_t>(group.size()));
  std::iota(everyone.begin(), everyone.end(), 0);
  return group.part(group.name(), everyone);
}

}  // namespace

UnitLine::UnitLine(const World& world, const UnitOptions& options)
    : options_(options), replicas_(world.along(Axis::dp_replicate)), shards_(again(world.shards())) {
  if (world.shards().size() == 1) {
    options_.stage = ZeroStage::moments;
  }
  if (world.mesh().degree(Axis::ep) > 1) {
    expert_shards_ = again(world.expert_shards());
  }
}

void UnitLine::append(WeightUnit& unit) {
  units_.push_back(&unit);
  complete_.push_back(false);
}

std::size_t UnitLine::place(const WeightUnit& unit) const {
  const auto found = std::find(units_.begin(), units_.end(), &unit);
  KF_CHECK(found != units_.end(), Code::other, "a unit of weights stands in no line");
  return static_cast<std::size_t>(found - units_.begin());
}

WeightUnit* UnitLine::next(const WeightUnit& unit) const {
  const std::size_t place = this->place(unit);
  return place + 2 < units_.size() ? units_[place + 1] : nullptr;
}

WeightUnit* UnitLine::previous(const WeightUnit& unit) const {
  const std::size_t place = this->place(unit);
  return place > 0 && place + 1 < units_.size() ? units_[place - 1] : nullptr;
}

void UnitLine::begin_backward(bool last) {
  reduces_ = last || (options_.each_micro && options_.stage != ZeroStage::moments);
  last_ = last;
  left_ = !last;
  reduced_ = 0;
  std::fill(complete_.begin(), complete_.end(), false);
}

void UnitLine::end_backward() {
  for (WeightUnit* const unit : units_) {
    unit->end_micro();
  }
  if (reduces_) {
    std::fill(complete_.begin(), complete_.end(), true);
    advance();
    settle();
  }
  reduces_ = false;
}

void UnitLine::reduce() {
  if (left_) {
    begin_backward(true);
    end_backward();
  }
  left_ = true;
}

void UnitLine::complete(const WeightUnit& unit) {
  if (reduces_) {
    complete_[place(unit)] = true;
    advance();
  }
}

void UnitLine::advance() {
  const std::size_t blocks = units_.size() - 1;
  for (; reduced_ < units_.size(); ++reduced_) {
    const std::size_t place = reduced_ < blocks ? blocks - 1 - reduced_ : blocks;
    if (!complete_[place]) {
      return;
    }
    units_[place]->each_bucket([this](ParameterList bucket, bool cut, bool experts) {
      if (cut || last_) {  // a gradient that stays whole is the sum of all ranks only once
        begin(std::move(bucket), cut, experts);
      }
    });
  }
}

void UnitLine::begin(ParameterList bucket, bool cut, bool experts) {
  pass_on();
  Group& shards = experts && expert_shards_ != nullptr ? *expert_shards_ : *shards_;
  over_shards_ = std::make_unique<Reduction>(std::move(bucket), cut, Adders{shards, replicas_}, options_.reduce_type);
  if (!options_.prefetch) {
    settle();
  } else if (shards.size() == 1) {
    pass_on();  // nothing to wait for
  }
}

void UnitLine::pass_on() {
  if (over_replicas_) {
    over_replicas_->finish();
    over_replicas_.reset();
  }
  if (over_shards_) {
    over_shards_->pass_on();
    over_replicas_ = std::move(over_shards_);
  }
}

void UnitLine::settle() {
  pass_on();
  pass_on();
}

}  // namespace kf
