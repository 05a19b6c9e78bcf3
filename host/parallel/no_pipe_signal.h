#pragma once
// Writing to a connection whose other end is gone must be an error, not the end of this process.

#include <csignal>  // and of POSIX sigtimedwait, pthread_sigmask

namespace kf {

/// While it lives, a write of this thread to a closed connection gives EPIPE and no SIGPIPE; threads that are started meanwhile keep that
/// for ever. (Gloo writes without MSG_NOSIGNAL, in the caller's thread and in its own; Python's torch ignores the signal for the whole
/// process, which is not ours to decide here.)
class NoPipeSignal {
 public:
  NoPipeSignal() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &earlier_);
  }
  ~NoPipeSignal() {
    if (sigismember(&earlier_, SIGPIPE) == 0) {
      constexpr timespec kNow{0, 0};
      sigtimedwait(&pipe_, nullptr, &kNow);  // one that came meanwhile is dropped
      pthread_sigmask(SIG_SETMASK, &earlier_, nullptr);
    }
  }
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;

 private:
  sigset_t pipe_{}, earlier_{};
};

}  // namespace kf
