#pragma once
// What a job says of the process as a whole.

#include "config/schema/config.h"

namespace kf {

/// Holds while a run is on; behind it, memory that is kept for tensors goes back to the system.
class ProcessSettings {
 public:
  explicit ProcessSettings(const config::RunConfig& run);
  ~ProcessSettings();
  ProcessSettings(const ProcessSettings&) = delete;
  ProcessSettings& operator=(const ProcessSettings&) = delete;
};

}  // namespace kf
