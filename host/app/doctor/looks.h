#pragma once
// What the doctor looks at, a function each.

#include "app/doctor/doctor.h"
#include "app/doctor/finding.h"

namespace kf {

/// `cpuinfo`: /proc/cpuinfo, but for tests.
Finding look_at_processor(const fs::path& cpuinfo = "/proc/cpuinfo");
Finding look_at_threads();
Finding look_at_memory();
Finding look_at_limits();
Finding look_at_shared_memory();
Finding look_at_torch(const Installation& installation);
Finding look_at_gpus(const Installation& installation);
Finding look_at_tables(const Installation& installation);
/// Space and speed of the disk below `folder`, which need not be there yet.
Finding look_at_disk(const fs::path& folder);
Finding look_at_temporary();
/// Who started this process, by the variables that it left.
Finding look_at_launcher();

}  // namespace kf
