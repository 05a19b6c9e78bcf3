#pragma once
// Readers as the settings ask for them.

#include <cstddef>

#include "data/read/reader.h"

namespace kf {

namespace config {
struct Config;
struct DataConfig;
}  // namespace config

/// Of data.dataset_path, or data.hf_dataset_name.
SourceRequest source_request(const config::DataConfig& data);
/// Of data.datasets[index]; what it leaves out is [data]'s.
SourceRequest source_request(const config::DataConfig& data, std::size_t index);

/// Which text a record has, by [data]. `chat` stays null: make_chat_format needs a tokenizer.
ReadOptions read_options(const config::DataConfig& data);
/// With what data.datasets[index] says itself.
ReadOptions read_options(const config::DataConfig& data, std::size_t index);
/// With what eval.datasets[index] says itself.
ReadOptions read_options_of_evaluation(const config::Config& config, std::size_t index);

/// Whether records may hold chats: then special tokens stand in what a format writes alone.
bool writes_chats(const ReadOptions& options);

}  // namespace kf
