#pragma once
// Data sets of the Hugging Face hub by name.

#include "data/file/source_files.h"

namespace kf::hub {

/// The files of a data set's split, fetched into the cache or, with hf_streaming, to be fetched when they are read. Throws Code::data.
SourceFiles resolve_dataset(const SourceRequest& request);

}  // namespace kf::hub
