#include "data/order/order.h"

#include <algorithm>

#include "core/error.h"

namespace kf {

Order::Order(const std::vector<OrderPhase>& phases, std::int64_t batch_size, const config::BatchPlan& plan) {
  KF_CHECK(!phases.empty() && phases[0].start_step == 0 && phases[0].sampler, Code::data, "the first phase of an order starts at step 0");
  stretches_.push_back({0, 0, 0, 0, batch_size, phases[0].sampler});
  check(stretches_.back());
  for (std::size_t i = 1; i < phases.size(); ++i) {
    KF_CHECK(phases[i].start_step > phases[i - 1].start_step, Code::data,
             "data.phases: start_step {} must be larger than that of the phase before ({})", phases[i].start_step,
             phases[i - 1].start_step);
    change(plan.first_micro(phases[i].start_step), phases[i].sampler, 0);
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

std::vector<std::int64_t> Order::samples(std::int64_t micro) const {
  const Position at = position(micro);
  std::vector<std::int64_t> out(static_cast<std::size_t>(at.size));
  stretch_of(micro).sampler->read(at.epoch, at.sample, out);
  return out;
}

std::int64_t Order::batches_per_epoch() const {
  return std::max<std::int64_t>(1, stretches_.front().sampler->pass() / stretches_.front().batch_size);
}

/// Where the data would end if this stretch went on.
std::int64_t Order::end_of(const Stretch& stretch, std::int64_t epochs) const {
  const std::int64_t room = stretch.sampler->size() - stretch.offset;  // in the epoch in which it begins
  if (stretch.sampler->endless()) {
    const std::int64_t left = room >= 0 ? room / stretch.batch_size : 0;
    return left > Sampler::kEndless - stretch.micro ? Sampler::kEndless : stretch.micro + left;
  }
  if (epochs == 0) {
    return Sampler::kEndless;
  }
  const std::int64_t more = epochs - 1 - stretch.epoch;
  return more < 0 ? stretch.micro : stretch.micro + room / stretch.batch_size + more * stretch.batches();
}

std::int64_t Order::end(std::int64_t epochs) const {
  for (std::size_t i = 0; i + 1 < stretches_.size(); ++i) {
    if (const std::int64_t end = end_of(stretches_[i], epochs); end <= stretches_[i + 1].micro) {
      return end;
    }
  }
  return end_of(stretches_.back(), epochs);
}

std::int64_t Order::samples_before(std::int64_t micro) const {
  const Stretch& stretch = stretch_of(micro);
  return stretch.offset + (micro - stretch.micro) * stretch.batch_size;
}

}  // namespace kf
