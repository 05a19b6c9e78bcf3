#pragma once
// What torch writes on standard error by itself.

#include <c10/util/Logging.h>

#include <algorithm>

namespace kf {

/// For its time torch writes nothing below `level`, in any thread.
class QuietTorch {
 public:
  static constexpr int kErrors = 2, kFatal = 3;

  explicit QuietTorch(int level) { FLAGS_caffe2_log_level = std::max(before_, level); }
  ~QuietTorch() { FLAGS_caffe2_log_level = before_; }
  QuietTorch(const QuietTorch&) = delete;
  QuietTorch& operator=(const QuietTorch&) = delete;

 private:
  const int before_ = FLAGS_caffe2_log_level;
};

}  // namespace kf
