#pragma once
// ATen's operators and the nodes of backward as ranges of the thread that trains.

#include <ATen/record_function.h>

namespace kf {

/// While one exists, each operator of this thread is a range, and each node of backward one inside of the layer whose forward made it.
class OpRanges {
 public:
  OpRanges();
  ~OpRanges();
  OpRanges(const OpRanges&) = delete;
  OpRanges& operator=(const OpRanges&) = delete;

  /// Of a TraceRecorder: nodes of the graph that this thread has made.
  static std::uint64_t nodes_made();

 private:
  at::CallbackHandle handle_;
};

}  // namespace kf
