#pragma once
// What [data] stands for, opened: one data set, or a mixture.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/order/phases.h"
#include "data/sequence/dataset.h"
#include "data/source/loader_options.h"
#include "data/source/source.h"

namespace kf {

namespace config {
struct DataConfig;
}

struct TrainData {
  std::shared_ptr<const Dataset> data;
  std::optional<MixtureSpec> mixture;               // with data.datasets
  bool text = false;                                // any of it is text
  std::optional<std::int64_t> eos;                  // the tokenizer's own, which ends its documents
  bool tokens = false;                              // any of it is token files, or a data set that is a part
  std::vector<std::vector<FilePrint>> prints = {};  // of the files of each source
};

/// Whether nothing is given to learn from: then ids are random.
bool is_synthetic(const config::DataConfig& data);

/// A part of `[data]`: mixture (`data.datasets`), files (`dataset_path`), else synthetic random tokens. Throws Code::data.
TrainData open_train_data(const config::Config& config, const LoaderOptions& options, const HoldOut& part);

/// What a user should know of the data before training on it.
void warn_of(const config::Config& config, const TrainData& data);

/// Whether documents are kept apart, as the setting `key` ("data.pack_sequences", "eval.pack_sequences") asks for, and the id that ends one
/// where only ids say so. Throws Code::data when that is not known.
struct Apart {
  bool apart = false;
  std::optional<std::int64_t> eos;
};
Apart keep_apart(const config::Config& config, const TrainData& data, bool wanted, const char* key);

/// One line for each source, "hash name", and below it those of its files (data_record.h): what changed can be said when a run goes on.
std::string fingerprint_lines(const TrainData& data);

}  // namespace kf
