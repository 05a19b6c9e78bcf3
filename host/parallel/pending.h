#pragma once
// What was begun and has to be waited for.

#include <functional>
#include <utility>

namespace kf {

/// The end of a call that was begun. Until `wait` returns, its tensors belong to the call: nobody else reads what it writes or writes what
/// it reads. On a GPU `wait` makes the current stream wait, not the host. Wait on the thread that began it. One that is dropped still runs
/// on (its tensors are kept), but nobody hears of its errors.
class [[nodiscard]] Pending {
 public:
  /// Nothing to wait for.
  Pending() = default;
  explicit Pending(std::function<void()> finish) : finish_(std::move(finish)) {}

  /// Waits; a second time, does nothing. Throws what went wrong, here or on another rank: what begins a call throws for its own mistakes
  /// alone.
  void wait() {
    if (const auto finish = std::exchange(finish_, nullptr)) {
      finish();
    }
  }

 private:
  std::function<void()> finish_;
};

}  // namespace kf
