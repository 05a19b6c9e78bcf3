#include "train/eval/label_bytes.h"

#include <vector>

namespace kf {

std::int64_t label_bytes(const Tokenizer& tokenizer, std::span<const std::int64_t> tokens, std::span<const std::int64_t> labels) {
  std::int64_t total = 0;
  for (std::size_t first = 0; first < labels.size();) {
    if (labels[first] < 0) {
      ++first;
      continue;
    }
    std::vector<std::int64_t> run{tokens[first]};
    while (first < labels.size() && labels[first] >= 0) {
      run.push_back(labels[first++]);
    }
    const std::size_t all = tokenizer.decode(run).size();
    const std::size_t before = tokenizer.decode(std::span(run).first(1)).size();
    total += static_cast<std::int64_t>(all - before);
  }
  return total;
}

}  // namespace kf
