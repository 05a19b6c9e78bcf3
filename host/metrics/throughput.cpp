#include "metrics/throughput.h"

#include <chrono>
#include <utility>

namespace kf {

Clock steady_clock() {
  return [] { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); };
}

Throughput::Throughput(double flops_per_token, double peak_flops, Clock clock)
    : flops_per_token_(flops_per_token), peak_flops_(peak_flops), clock_(std::move(clock)), begin_(clock_()), window_begin_(begin_) {}

void Throughput::pause() { paused_at_ = clock_(); }

void Throughput::resume() { window_begin_ += clock_() - paused_at_; }

Rate Throughput::rate() const { return rate_at(clock_()); }

Rate Throughput::rate_at(double now) const {
  const double seconds = now - window_begin_;
  Rate rate;
  if (seconds > 0) {
    rate.tokens_per_sec = static_cast<double>(tokens_) / seconds;
    rate.mfu = peak_flops_ > 0 ? rate.tokens_per_sec * flops_per_token_ / peak_flops_ : 0;
  }
  return rate;
}

Rate Throughput::take() { return take_at(seconds()); }

Rate Throughput::take_at(double seconds) {
  const double now = begin_ + seconds;
  const Rate taken = rate_at(now);
  window_begin_ = now;
  tokens_ = 0;
  return taken;
}

}  // namespace kf
