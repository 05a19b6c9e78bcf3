#include "data/order.h"

#include "core/error.h"

namespace kf {

Order::Order(std::vector<OrderPhase> phases, std::int64_t batch_size, const config::BatchPlan& plan) : phases_(std::move(phases)) {
  KF_CHECK(!phases_.empty() && phases_[0].start_step == 0 && phases_[0].sampler, Code::data,
           "the first phase of an order starts at step 0");
  stretches_.push_back({0, 0, 0, 0, batch_size, phases_[0].sampler});
  check(stretches_.back());
  for (std::size_t i = 1; i < phases_.size(); ++i) {
    KF_CHECK(phases_[i].start_step > phases_[i - 1].start_step, Code::data,
             "data.phases: start_step {} must be larger than that of the phase before ({})", phases_[i].start_step,
             phases_[i - 1].start_step);
    change(plan.first_micro(phases_[i].start_step), phases_[i].sampler, 0);
    stretches_.back().phase = static_cast<std::int64_t>(i);
  }
}

void Order::check(const Stretch& stretch) const {
  KF_CHECK(stretch.batches() > 0, Code::data,
           "{} samples for each rank are fewer than a batch (train.batch_size = {}); lower train.batch_size or train.seq_len, or bring "
           "more data",
           stretch.sampler->size(), stretch.batch_size);
}

void Order::change(std::int64_t micro, std::shared_ptr<const Sampler> sampler, std::int64_t batch_size) {
  KF_CHECK(micro >= stretches_.back().micro, Code::data, "the order of micro-batch {} is set already; a change at {} comes too late",
           stretches_.back().micro, micro);
  Stretch next = stretches_.back();
  if (micro > next.micro) {
    // An epoch ends when the next batch is asked for, so one that is just used up is still the current one.
    const Position last = position(micro - 1);
    next.micro = micro;
    next.epoch = last.epoch;
    next.offset = last.sample + last.size;
  }
  if (sampler) {
    next.sampler = std::move(sampler);
    next.offset = 0;
  }
  next.batch_size = batch_size > 0 ? batch_size : next.batch_size;
  check(next);
  if (micro == stretches_.back().micro) {
    stretches_.pop_back();
  }
  stretches_.push_back(std::move(next));
}

void Order::restart(std::int64_t micro, const Order& before) {
  const std::int64_t epoch = micro > 0 ? before.position(micro - 1).epoch + 1 : 0;
  Stretch first = stretches_.back();
  first.micro = micro;
  first.epoch = epoch;
  first.offset = 0;
  stretches_ = {std::move(first)};
}

const Order::Stretch& Order::stretch_of(std::int64_t micro) const {
  KF_CHECK(micro >= stretches_.front().micro, Code::data, "micro-batch {} asked for; they count from {}", micro, stretches_.front().micro);
  std::size_t i = stretches_.size() - 1;
  while (stretches_[i].micro > micro) {
    --i;
  }
  return stretches_[i];
}

Order::Position Order::position(std::int64_t micro) const {
  const Stretch& stretch = stretch_of(micro);
  const std::int64_t number = micro - stretch.micro;
  const std::int64_t left = (stretch.sampler->size() - stretch.offset) / stretch.batch_size;  // batches of the epoch it begins in
  Position at;
  at.phase = stretch.phase;
  at.size = stretch.batch_size;
  if (number < left) {
    at.epoch = stretch.epoch;
    at.sample = stretch.offset + number * stretch.batch_size;
  } else {
    at.epoch = stretch.epoch + 1 + (number - left) / stretch.batches();
    at.sample = (number - left) % stretch.batches() * stretch.batch_size;
  }
  at.batch = at.sample / stretch.batch_size;
  return at;
}

std::span<const std::int64_t> Order::samples(std::int64_t micro) {
  const Position at = position(micro);
  const std::shared_ptr<const Sampler>& sampler = stretch_of(micro).sampler;
  if (sampler != cached_sampler_ || at.epoch != cached_epoch_) {
    cached_ = sampler->order(at.epoch);
    cached_sampler_ = sampler;
    cached_epoch_ = at.epoch;
  }
  return std::span<const std::int64_t>(cached_).subspan(static_cast<std::size_t>(at.sample), static_cast<std::size_t>(at.size));
}

double Order::lr_scale(std::int64_t step) const {
  double scale = 1.0;
  for (const OrderPhase& phase : phases_) {
    scale = phase.start_step <= step ? phase.lr_scale : scale;
  }
  return scale;
}

}  // namespace kf
