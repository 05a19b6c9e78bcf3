#include "data/sequence/packing.h"

#include <algorithm>

namespace kf {

void split_window(std::span<const std::int64_t> window, std::span<std::int64_t> inputs, std::span<std::int64_t> labels) {
  std::copy(window.begin(), window.end() - 1, inputs.begin());
  std::copy(window.begin() + 1, window.end(), labels.begin());
}

void pack_window(std::span<const std::int64_t> window, std::int64_t eos, std::span<std::int64_t> inputs, std::span<std::int64_t> labels,
                 std::span<std::int64_t> doc_ids) {
  std::int64_t document = 0;
  for (std::size_t t = 0; t + 1 < window.size(); ++t) {
    const std::int64_t last = window[t] == eos ? 1 : 0;  // an eos ends its document, so its label is the first of the next
    inputs[t] = window[t];
    labels[t] = last == 1 ? kIgnore : window[t + 1];
    doc_ids[t] = document;
    document += last;
  }
}

}  // namespace kf
