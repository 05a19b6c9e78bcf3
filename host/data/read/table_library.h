#pragma once
// Opens libkf-arrow.so, once, when the first table is met: the program starts fast and runs on machines without pyarrow.

#include "data/read/table_module.h"

namespace kf {

/// The libraries of Arrow are looked for in the folder KF_ARROW_DIR of the environment, in a folder `pyarrow` beside the program, and where
/// they were at build time. Thread-safe. Throws Code::data saying what is missing and what to do.
OpenTable open_table_library();

}  // namespace kf
