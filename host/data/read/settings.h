#pragma once
// Readers as the settings ask for them.

#include <cstddef>

#include "data/read/reader.h"

namespace kf {

namespace config {
struct DataConfig;
}

/// Of data.dataset_path, or data.hf_dataset_name.
SourceRequest source_request(const config::DataConfig& data);
/// Of data.datasets[index]; what it leaves out is [data]'s.
SourceRequest source_request(const config::DataConfig& data, std::size_t index);

ReadOptions read_options(const config::DataConfig& data);
ReadOptions read_options(const config::DataConfig& data, std::size_t index);

}  // namespace kf
