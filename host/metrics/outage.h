#pragma once
// A file of a run that cannot be written for a while: said once, and once more when it is over.

#include <cstddef>
#include <string>

namespace kf {

class Outage {
 public:
  /// It cannot be written. The first call says why, and what is done `meanwhile`.
  void failed(const std::string& reason, const std::string& meanwhile);
  /// It can be written; says `done` where it could not before.
  void over(const std::string& done);
  bool is_on() const { return !reason_.empty(); }
  /// Why it cannot be written; "" where it can.
  const std::string& reason() const { return reason_; }

 private:
  std::string reason_;
};

}  // namespace kf
