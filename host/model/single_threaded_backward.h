#pragma once

#include <c10/core/AutogradState.h>

namespace kf {

/// While it lives, backward runs on this thread alone: hooks and functions may be Lua, and one device needs no more.
class SingleThreadedBackward {
 public:
  SingleThreadedBackward() : before_(state().get_multithreading_enabled()) { state().set_multithreading_enabled(false); }
  ~SingleThreadedBackward() { state().set_multithreading_enabled(before_); }
  SingleThreadedBackward(const SingleThreadedBackward&) = delete;
  SingleThreadedBackward& operator=(const SingleThreadedBackward&) = delete;

 private:
  static c10::AutogradState& state() { return c10::AutogradState::get_tls_state(); }
  bool before_;
};

}  // namespace kf
