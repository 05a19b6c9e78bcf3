#pragma once
// A mark of modules whose weights lie whole on every rank along tp, whatever their layers would do elsewhere.

namespace kf {

/// Beside Module: parts that scripts have made, and what stands in them; layers of experts in them are divided all the same.
class RunsWhole {
 public:
  RunsWhole() = default;
  virtual ~RunsWhole() = default;
  RunsWhole(const RunsWhole&) = delete;
  RunsWhole& operator=(const RunsWhole&) = delete;
};

}  // namespace kf
