#include "metrics/heartbeat.h"

#include <unistd.h>

#include <utility>

#include "config/tree/json.h"
#include "core/error.h"
#include "metrics/wall_time.h"

namespace kf {

Heartbeat::Heartbeat(fs::path file, double every, Clock clock, Listener listener)
    : file_(std::move(file)), every_(every), clock_(std::move(clock)), listener_(std::move(listener)) {}

void Heartbeat::beat(const std::string& doing, std::int64_t step) {
  if (listener_) {
    listener_(doing, step);
  }
  if (every_ > 0 && (last_ < 0 || clock_() - last_ >= every_)) {
    write(doing, step);
  }
}

void Heartbeat::now(const std::string& doing, std::int64_t step) {
  if (listener_) {
    listener_(doing, step);
  }
  if (every_ > 0) {
    write(doing, step);
  }
}

void Heartbeat::write(const std::string& doing, std::int64_t step) {
  last_ = clock_();
  config::Table out;
  out["unix"] = config::Node(WallTime::system_clock()());
  out["step"] = config::Node(step);
  out["doing"] = config::Node(doing);
  out["pid"] = config::Node(static_cast<std::int64_t>(::getpid()));
  out["every"] = config::Node(every_);
  try {
    write_file_atomic(file_, config::to_json(config::Node(std::move(out))) + "\n");
    outage_.over(format("{} is written again", file_));
  } catch (const Error& e) {
    outage_.failed(e.what(), "the run goes on without its heartbeat");
  }
}

}  // namespace kf
