#pragma once
// The Arrow files that Python's `datasets` has prepared from data sets of the hub.

#include <optional>

#include "data/file/source_files.h"

namespace kf::hub {

/// HF_DATASETS_CACHE (else HF_HOME/datasets)/OWNER___NAME/CONFIG/VERSION/HASH/*-SPLIT*.arrow: the newest. Nothing when there is none.
/// Throws Code::data when several configurations are there and none is asked for.
std::optional<SourceFiles> find_prepared(const SourceRequest& request);

}  // namespace kf::hub
