#include "sweep/trial_pulse.h"

#include <chrono>
#include <exception>
#include <memory>
#include <utility>

#include "core/log.h"
#include "sweep/store.h"

namespace kf::sweep {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kTick{1};
constexpr std::chrono::seconds kBeat{10};  // Store::kGraceSeconds is several of them

}  // namespace

TrialPulse::TrialPulse(const fs::path& dir, std::int64_t id, std::function<void(const std::vector<Trial>&)> ticked)
    : dir_(fs::absolute(dir)), id_(id), ticked_(std::move(ticked)), thread_([this] { work(); }) {}

TrialPulse::~TrialPulse() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  over_changed_.notify_all();
  thread_.join();
}

/// False when the trial is over.
bool TrialPulse::wait_for_tick() {
  std::unique_lock lock(mutex_);
  return !over_changed_.wait_for(lock, ticked_ ? kTick : kBeat, [this] { return over_; });
}

void TrialPulse::work() {
  try {
    std::unique_ptr<Store> store;
    Clock::time_point beaten = Clock::now();
    while (wait_for_tick()) {
      if (!store) {
        store = std::make_unique<Store>(dir_ / "study.db", Database::Mode::existing);
        store->open_study();
      }
      if (const Clock::time_point now = Clock::now(); now - beaten >= kBeat) {
        beaten = now;
        store->beat({id_});
      }
      if (ticked_) {
        ticked_(store->trials());
      }
    }
  } catch (const std::exception& fault) {
    log::warn("the trial goes on, but the sweep's table is not kept up with it: {}", fault.what());
  }
}

}  // namespace kf::sweep
