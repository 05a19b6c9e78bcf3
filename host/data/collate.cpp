#include "data/collate.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "data/packing.h"

namespace kf {

Batch collate(const Dataset& data, std::span<const std::int64_t> samples, std::int64_t seq_len, std::optional<std::int64_t> eos) {
  const auto rows = static_cast<std::int64_t>(samples.size());
  const auto width = static_cast<std::size_t>(seq_len);
  Batch batch;
  batch.tokens = at::empty({rows, seq_len}, at::kLong);
  batch.labels = at::empty({rows, seq_len}, at::kLong);
  if (eos) {
    batch.doc_ids = at::empty({rows, seq_len}, at::kLong);
  }
  std::vector<std::int64_t> window(width + 1);
  const auto row_of = [&](const at::Tensor& tensor, std::size_t row) {
    return std::span(tensor.data_ptr<std::int64_t>() + row * width, width);
  };
  for (std::size_t row = 0; row < samples.size(); ++row) {
    data.get(samples[row], window);
    const std::span<std::int64_t> labels = row_of(batch.labels, row);
    if (eos) {
      pack_window(window, *eos, row_of(batch.tokens, row), labels, row_of(batch.doc_ids, row));
    } else {
      split_window(window, row_of(batch.tokens, row), labels);
    }
    batch.counted += seq_len - std::count(labels.begin(), labels.end(), kIgnore);
  }
  batch.samples.assign(samples.begin(), samples.end());
  return batch;
}

}  // namespace kf
