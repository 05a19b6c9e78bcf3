#pragma once
// Records of TensorBoard's event files: messages `Event` (tensorflow/core/util/event.proto), each framed as a TFRecord
// (tensorflow.org/tutorials/load_data/tfrecord): its length, the length's masked CRC-32C, the message, its masked CRC-32C, little-endian.
//
// Every function gives framed records, ready to be appended. `wall` is in seconds since 1970.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/tree/node.h"
#include "metrics/histogram.h"
#include "metrics/row.h"

namespace kf::tensorboard {

/// The CRC-32C (Castagnoli) of `bytes`, rotated and shifted as TFRecords have it.
std::uint32_t masked_crc(std::string_view bytes);

/// The first record of a file.
std::string version_record(double wall);
/// From here on the run begins again: readers forget what came before of this step and later ones.
std::string start_record(double wall, std::int64_t step);
std::string scalars_record(double wall, std::int64_t step, const Values& values);
std::string histograms_record(double wall, const Histograms& all);
/// The page reads Markdown: the text is shown as it is, as a block of code.
std::string text_record(double wall, std::int64_t step, const std::string& tag, const std::string& text);

/// The records of `file` without values of step `first` and later ones, and without a last record that was not written to its end.
std::string records_before(std::string_view file, std::int64_t first);

/// For the page of hyperparameters: what the run, `group` by name, was started with; and that it is complete.
std::string settings_record(double wall, const std::string& group, const std::vector<std::pair<std::string, config::Node>>& settings);
std::string complete_record(double wall);

}  // namespace kf::tensorboard
