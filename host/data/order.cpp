#include "data/order.h"

#include "core/error.h"

namespace kf {

Order::Order(std::vector<OrderPhase> phases, std::int64_t batch_size, config::BatchPlan plan)
    : phases_(std::move(phases)), batch_size_(batch_size), plan_(std::move(plan)) {
  KF_CHECK(!phases_.empty() && phases_[0].start_step == 0 && phases_[0].sampler, Code::data,
           "the first phase of an order starts at step 0");
  for (std::size_t i = 0; i < phases_.size(); ++i) {
    KF_CHECK(i == 0 || phases_[i].start_step > phases_[i - 1].start_step, Code::data,
             "data.phases: start_step {} must be larger than that of the phase before ({})", phases_[i].start_step,
             i == 0 ? 0 : phases_[i - 1].start_step);
    restarts_.push_back(phases_[i].sampler != nullptr);
    if (!phases_[i].sampler) {
      phases_[i].sampler = phases_[i - 1].sampler;
    }
    KF_CHECK(batches_of(i) > 0, Code::data,
             "{} samples for each rank are fewer than a batch (train.batch_size = {}); lower train.batch_size or train.seq_len, or bring "
             "more data",
             phases_[i].sampler->size(), batch_size_);
  }
}

std::int64_t Order::batches_of(std::size_t phase) const { return phases_[phase].sampler->size() / batch_size_; }

Order::Position Order::position(std::int64_t micro) const {
  KF_CHECK(micro >= 0, Code::data, "micro-batch {} asked for; they count from 0", micro);
  // Walks from one change of sampler to the next: `start` is the micro-batch at which the current order began, in `epoch`.
  std::int64_t start = 0;
  Position at;
  std::int64_t epoch = 0;
  for (std::size_t i = 1; i < phases_.size(); ++i) {
    const std::int64_t begin = plan_.first_micro(phases_[i].start_step);
    if (micro < begin) {
      break;
    }
    at.phase = static_cast<std::int64_t>(i);
    if (restarts_[i]) {
      // An epoch ends when the next batch is asked for, so one that is just used up is still the current one.
      epoch += begin > start ? (begin - start - 1) / batches_of(i - 1) : 0;
      start = begin;
    }
  }
  const std::int64_t batches = batches_of(static_cast<std::size_t>(at.phase));
  at.epoch = epoch + (micro - start) / batches;
  at.batch = (micro - start) % batches;
  return at;
}

std::span<const std::int64_t> Order::samples(std::int64_t micro) {
  const Position at = position(micro);
  if (at.phase != cached_phase_ || at.epoch != cached_epoch_) {
    cached_ = phases_[static_cast<std::size_t>(at.phase)].sampler->order(at.epoch);
    cached_phase_ = at.phase;
    cached_epoch_ = at.epoch;
  }
  return std::span<const std::int64_t>(cached_).subspan(static_cast<std::size_t>(at.batch * batch_size_),
                                                        static_cast<std::size_t>(batch_size_));
}

double Order::lr_scale(std::int64_t step) const {
  double scale = 1.0;
  for (const OrderPhase& phase : phases_) {
    scale = phase.start_step <= step ? phase.lr_scale : scale;
  }
  return scale;
}

}  // namespace kf
