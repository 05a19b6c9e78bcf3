#include "data/sequence/collate.h"

#include <ATen/ops/empty.h>

#include <algorithm>

namespace kf {

Batch collate(const Dataset& data, std::span<const std::int64_t> samples, const CollateOptions& options) {
  const auto rows = static_cast<std::int64_t>(samples.size());
  const auto width = static_cast<std::size_t>(options.seq_len);
  const auto make = [&] { return at::empty({rows, options.seq_len}, at::TensorOptions(at::kLong).pinned_memory(options.pinned)); };
  Batch batch;
  batch.tokens = make();
  batch.labels = make();
  if (options.apart || data.packed()) {
    batch.doc_ids = make();
  }
  const auto row_of = [&](const at::Tensor& tensor, std::size_t row) {
    return tensor.defined() ? std::span(tensor.data_ptr<std::int64_t>() + row * width, width) : std::span<std::int64_t>();
  };
  const bool apart = batch.doc_ids.defined();
  for (std::size_t row = 0; row < samples.size(); ++row) {
    const auto filled = static_cast<std::size_t>(data.inputs(samples[row], options.seq_len));
    if (filled < width && !batch.doc_ids.defined()) {
      batch.doc_ids = make().zero_();  // one document a row, and padding
    }
    const RowView view{row_of(batch.tokens, row), row_of(batch.labels, row), row_of(batch.doc_ids, row)};
    data.row(samples[row], options.eos,
             {view.tokens.first(filled), view.labels.first(filled), apart ? view.doc_ids.first(filled) : std::span<std::int64_t>()});
    std::fill(view.tokens.begin() + static_cast<std::ptrdiff_t>(filled), view.tokens.end(), kPaddingToken);
    std::fill(view.labels.begin() + static_cast<std::ptrdiff_t>(filled), view.labels.end(), kIgnore);
    if (filled < width) {
      std::fill(view.doc_ids.begin() + static_cast<std::ptrdiff_t>(filled), view.doc_ids.end(), kPadding);
    }
    batch.counted += options.seq_len - std::count(view.labels.begin(), view.labels.end(), kIgnore);
  }
  batch.samples.assign(samples.begin(), samples.end());
  return batch;
}

Batch collate(const Dataset& data, std::span<const std::int64_t> samples, std::int64_t seq_len, std::optional<std::int64_t> eos) {
  return collate(data, samples, {seq_len, eos.has_value(), eos, false});
}

}  // namespace kf
