#include "train/eval/score_ids.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <numeric>

#include "model/mode.h"
#include "model/own_draws.h"

namespace kf {
namespace {

class Scoring {
 public:
  Scoring(Model& model, std::span<const ChoiceIds> texts, at::Device device)
      : model_(model), texts_(texts), device_(device), sums_(texts.size(), 0.0) {}

  std::vector<double> run(std::int64_t batch_size) {
    std::vector<std::size_t> order(texts_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    // The longest first: a batch that is too large for the memory fails at once.
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return inputs(a) > inputs(b); });
    const auto most = model_.takes_padding() ? static_cast<std::size_t>(batch_size) : 1;
    for (std::size_t first = 0; first < order.size(); first += most) {
      score(std::span(order).subspan(first, std::min(most, order.size() - first)));
    }
    return std::move(sums_);
  }

 private:
  std::int64_t inputs(std::size_t text) const {  // the last id is only predicted
    return static_cast<std::int64_t>(texts_[text].ids.size()) - 1;
  }

  /// Rows are filled up on the right: what comes later is seen by nothing that is scored, and each row has its own length.
  void score(std::span<const std::size_t> batch) {
    const std::int64_t width = inputs(batch.front());
    const at::Tensor tokens = at::zeros({static_cast<std::int64_t>(batch.size()), width}, at::kLong);
    std::vector<std::int64_t> places;   // flat positions whose logits are wanted
    std::vector<std::int64_t> targets;  // what should follow there
    std::vector<std::int64_t> lengths;
    for (std::size_t row = 0; row < batch.size(); ++row) {
      const std::vector<std::int64_t>& ids = texts_[batch[row]].ids;
      const auto start = static_cast<std::int64_t>(row) * width;
      lengths.push_back(inputs(batch[row]));
      std::copy(ids.begin(), ids.end() - 1, tokens.data_ptr<std::int64_t>() + start);
      for (std::int64_t t = lengths.back() - texts_[batch[row]].continuation; t < lengths.back(); ++t) {
        places.push_back(start + t);
        targets.push_back(ids[static_cast<std::size_t>(t) + 1]);
      }
    }
    ForwardContext context;
    if (lengths.back() != width) {  // the shortest
      context.lengths = at::tensor(lengths, at::kLong).to(device_);
    }
    const at::Tensor found = log_probabilities(context, tokens, places, targets);
    const double* next = found.const_data_ptr<double>();
    for (const std::size_t text : batch) {
      for (std::int64_t t = 0; t < texts_[text].continuation; ++t) {
        sums_[text] += *next++;
      }
    }
  }

  /// (N) double on the host.
  at::Tensor log_probabilities(ForwardContext& context, const at::Tensor& tokens, const std::vector<std::int64_t>& places,
                               const std::vector<std::int64_t>& targets) {
    const at::Tensor index = at::tensor(places, at::kLong).to(device_);
    const at::Tensor input = tokens.to(device_);
    const at::Tensor logits = model_.head()
                                  ? model_.project(model_.hidden(input, context).flatten(0, 1).index_select(0, index).unsqueeze(0))
                                  : model_.forward(input, context).flatten(0, 1).index_select(0, index);
    const at::Tensor wide = logits.to(at::kFloat).view({static_cast<std::int64_t>(places.size()), -1}).log_softmax(-1);
    return wide.gather(1, at::tensor(targets, at::kLong).to(device_).unsqueeze(1)).squeeze(1).to(at::kCPU, at::kDouble).contiguous();
  }

  Model& model_;
  std::span<const ChoiceIds> texts_;
  at::Device device_;
  std::vector<double> sums_;
};

}  // namespace

std::vector<double> loglikelihoods(Model& model, std::span<const ChoiceIds> texts, at::Device device, std::int64_t batch_size) {
  const at::NoGradGuard no_grad;
  const EvaluationMode mode(model);
  const OwnDraws draws(device, 0, "evaluation");
  return Scoring(model, texts, device).run(batch_size);
}

}  // namespace kf
