#pragma once
// Names for results of products and of attention, by which recomputation may keep them (model/recompute/kept_results.h).

namespace kf {

/// Gives the results of the products and of attention that are computed while it lives a name: "q", "context", "up". Inner names win.
class ResultName {
 public:
  explicit ResultName(const char* name);
  ~ResultName();
  ResultName(const ResultName&) = delete;
  ResultName& operator=(const ResultName&) = delete;

  /// The name that this thread computes under now; null for none.
  static const char* current();

 private:
  const char* before_;
};

/// What `compute` gives, under a name.
template <class Compute>
auto named_result(const char* name, const Compute& compute) {
  const ResultName named(name);
  return compute();
}

}  // namespace kf
