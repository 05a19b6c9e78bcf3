#include "model/forward.h"

#include <ATen/ATen.h>

#include <iterator>
#include <utility>

namespace kf {

void ForwardResults::note_largest(std::size_t layer, const at::Tensor& scores) {
  if (!scores.defined()) {
    return;
  }
  if (largest_scores.size() <= layer) {
    largest_scores.resize(layer + 1);
  }
  at::Tensor& largest = largest_scores[layer];
  largest = largest.defined() ? at::maximum(largest, scores) : scores;
}

std::vector<at::Tensor*> ForwardResults::losses() {
  std::vector<at::Tensor*> out;
  for (ExpertsRecord& record : experts) {
    for (at::Tensor* const loss : {&record.balance, &record.z, &record.extra, &record.mean_scores}) {
      if (loss->defined()) {
        out.push_back(loss);
      }
    }
  }
  return out;
}

void ForwardResults::take(ForwardResults&& piece) {
  std::move(piece.experts.begin(), piece.experts.end(), std::back_inserter(experts));
  std::move(piece.ahead.begin(), piece.ahead.end(), std::back_inserter(ahead));
  for (std::size_t layer = 0; layer < piece.largest_scores.size(); ++layer) {
    note_largest(layer, piece.largest_scores[layer]);
  }
}

}  // namespace kf
