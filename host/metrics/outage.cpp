#include "metrics/outage.h"

#include "core/log.h"

namespace kf {

void Outage::failed(const std::string& reason, const std::string& meanwhile) {
  const bool known = is_on();
  reason_ = reason.empty() ? "it cannot be written" : reason;
  if (!known) {
    log::warn("{}; {}", reason_, meanwhile);
  }
}

void Outage::over(const std::string& done) {
  if (is_on()) {
    reason_.clear();
    log::warn("{}", done);
  }
}

}  // namespace kf
