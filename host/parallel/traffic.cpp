#include "parallel/traffic.h"

#include <numeric>

#include "parallel/call.h"

namespace kf {
namespace {

double seconds_since(TrafficBook::Clock::time_point begin) {
  return std::chrono::duration<double>(TrafficBook::Clock::now() - begin).count();
}

}  // namespace

std::int64_t Traffic::all_bytes() const { return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}); }

Traffic& Traffic::operator+=(const Traffic& other) {
  for (std::size_t kind = 0; kind < calls.size(); ++kind) {
    calls[kind] += other.calls[kind];
    bytes[kind] += other.bytes[kind];
  }
  waited += other.waited;
  took += other.took;
  return *this;
}

Traffic Traffic::since(const Traffic& before) const {
  Traffic out = *this;
  for (std::size_t kind = 0; kind < calls.size(); ++kind) {
    out.calls[kind] -= before.calls[kind];
    out.bytes[kind] -= before.bytes[kind];
  }
  out.waited -= before.waited;
  out.took -= before.took;
  return out;
}

TrafficByGroup traffic_of(const Group& group) {
  const auto* const metered = dynamic_cast<const Metered*>(&group);
  return metered != nullptr ? metered->book().read() : TrafficByGroup{};
}

Traffic total_of(const TrafficByGroup& traffic) {
  Traffic out;
  for (const auto& [name, one] : traffic) {
    out += one;
  }
  return out;
}

CallKind kind_of(Op op) {
  switch (op) {
    case Op::sum: return CallKind::sum;
    case Op::largest: return CallKind::largest;
    case Op::broadcast: return CallKind::broadcast;
    case Op::gather: return CallKind::gather;
    case Op::scatter_sum: return CallKind::scatter_sum;
    case Op::exchange: return CallKind::exchange;
    case Op::barrier: return CallKind::barrier;
  }
  return CallKind::barrier;
}

void TrafficBook::sent(const std::string& group, CallKind kind, std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  Traffic& traffic = traffic_[group];
  ++traffic.calls[static_cast<std::size_t>(kind)];
  traffic.bytes[static_cast<std::size_t>(kind)] += bytes;
}

void TrafficBook::took(const std::string& group, Clock::time_point begin) {
  const double seconds = seconds_since(begin);
  const std::lock_guard lock(mutex_);
  traffic_[group].took += seconds;
}

void TrafficBook::waited(const std::string& group, Clock::time_point begin) {
  const double seconds = seconds_since(begin);
  const std::lock_guard lock(mutex_);
  traffic_[group].waited += seconds;
}

TrafficByGroup TrafficBook::read() const {
  const std::lock_guard lock(mutex_);
  return traffic_;
}

}  // namespace kf
