#pragma once
// Forwards whose gradient is to be differentiated again.

namespace kf {

/// While one exists, what runs on this thread can be differentiated twice: attention and the fused loss take their formulas instead of
/// kernels that have a first derivative only, and nothing is recomputed. (Norms, gates, rotations and experts' rows always can.)
class TwiceDifferentiable {
 public:
  TwiceDifferentiable();
  ~TwiceDifferentiable();
  TwiceDifferentiable(const TwiceDifferentiable&) = delete;
  TwiceDifferentiable& operator=(const TwiceDifferentiable&) = delete;

  static bool wanted();

 private:
  bool before_;
};

}  // namespace kf
