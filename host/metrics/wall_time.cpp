#include "metrics/wall_time.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <string>
#include <utility>

#include "core/error.h"
#include "metrics/names/names.h"

namespace kf {
namespace {

constexpr std::array<const char*, 6> kNames{"start", "data", "step", "skipped", "eval", "save"};

double number(const config::Node& state, const std::string& key) {
  const config::Node* const found = state.table() != nullptr ? state.table()->find(key) : nullptr;
  const auto* const real = found != nullptr ? std::get_if<double>(&found->value) : nullptr;
  const auto* const whole = found != nullptr ? std::get_if<std::int64_t>(&found->value) : nullptr;
  KF_CHECK(real != nullptr || whole != nullptr, Code::checkpoint, "what the checkpoint says of the run's wall time lacks '{}'", key);
  return real != nullptr ? *real : static_cast<double>(*whole);
}

}  // namespace

WallTime::UnixClock WallTime::system_clock() {
  return [] { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); };
}

WallTime::WallTime(UnixClock clock, double began)
    : clock_(std::move(clock)), part_began_(began > 0 ? began : clock_()), began_(part_began_) {}

void WallTime::started() { add(Cause::start, std::max(0.0, clock_() - part_began_)); }

Values WallTime::row() const {
  const double total = std::max(clock_() - began_, 1e-9);
  const double known = std::accumulate(spent_.begin(), spent_.end(), lost_);
  Values out{{row_key::goodput, std::clamp(spent_[static_cast<std::size_t>(Cause::step)] / total, 0.0, 1.0)}};
  for (std::size_t i = 0; i < spent_.size(); ++i) {
    if (i != static_cast<std::size_t>(Cause::step)) {
      out.emplace_back(row_key::of(row_key::wall_time, kNames[i]), spent_[i]);
    }
  }
  out.emplace_back(row_key::of(row_key::wall_time, "lost"), lost_);
  out.emplace_back(row_key::of(row_key::wall_time, "other"), std::max(0.0, total - known));
  return out;
}

config::Node WallTime::state() const {
  config::Table out;
  out["began"] = config::Node(began_);
  out["saved"] = config::Node(clock_());
  out["lost"] = config::Node(lost_);
  for (std::size_t i = 0; i < spent_.size(); ++i) {
    out[kNames[i]] = config::Node(spent_[i]);
  }
  return config::Node(std::move(out));
}

void WallTime::load(const config::Node& state) {
  if (state.is_null()) {
    return;
  }
  began_ = number(state, "began");
  lost_ = number(state, "lost") + std::max(0.0, part_began_ - number(state, "saved"));
  for (std::size_t i = 0; i < spent_.size(); ++i) {
    spent_[i] += number(state, kNames[i]);
  }
}

void WallTime::roll_back(const config::Node& state) {
  const double kept = state.is_null() ? 0.0 : number(state, "step");
  lost_ += std::max(0.0, of(Cause::step) - kept);
  of(Cause::step) = std::min(of(Cause::step), kept);
}

}  // namespace kf
