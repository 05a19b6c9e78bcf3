#pragma once
// What torch writes on standard error by itself.

#include <c10/util/Logging.h>

#include <algorithm>
#include <mutex>

namespace kf {

/// While one lives, torch writes nothing below `level`, in any thread.
class QuietTorch {
 public:
  static constexpr int kErrors = 2, kFatal = 3;

  explicit QuietTorch(int level) {
    const std::lock_guard lock(mutex_);
    if (alive_++ == 0) {
      before_ = FLAGS_caffe2_log_level;
    }
    FLAGS_caffe2_log_level = std::max(FLAGS_caffe2_log_level, level);
  }
  ~QuietTorch() {
    const std::lock_guard lock(mutex_);
    if (--alive_ == 0) {
      FLAGS_caffe2_log_level = before_;
    }
  }
  QuietTorch(const QuietTorch&) = delete;
  QuietTorch& operator=(const QuietTorch&) = delete;

 private:
  inline static std::mutex mutex_;  // guards the two below
  inline static int alive_ = 0, before_ = 0;
};

}  // namespace kf
