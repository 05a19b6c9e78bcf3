#include "train/choices.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "model/mode.h"

namespace kf {
namespace {

/// One answer on its way through the model.
struct Request {
  ChoiceIds text;
  std::size_t item = 0;
  std::size_t choice = 0;

  std::int64_t length() const { return static_cast<std::int64_t>(text.ids.size()) - 1; }  // the last id is only predicted
};

class Scoring {
 public:
  Scoring(Model& model, const Tokenizer& tokenizer, const std::vector<ChoiceItem>& items, const std::string& name,
          const ChoiceOptions& options)
      : model_(model), tokenizer_(tokenizer), items_(items), name_(name), options_(options) {}

  std::vector<ChoiceScores> run() {
    std::vector<ChoiceScores> out(items_.size());
    for (std::size_t i = 0; i < items_.size(); ++i) {
      out[i].loglikelihoods.resize(items_[i].choices.size());
      for (std::size_t c = 0; c < items_[i].choices.size(); ++c) {
        requests_.push_back(request_of(i, c));
        out[i].bytes.push_back(static_cast<std::int64_t>(items_[i].choices[c].size()));
      }
    }
    if (cut_ > 0) {
      log::warn("{} of {} answers did not fit into model.max_seq_len ({}): their contexts lost their beginning", cut_, requests_.size(),
                options_.max_positions);
    }
    // The longest first: a batch that is too large for the memory fails at once.
    std::stable_sort(requests_.begin(), requests_.end(), [](const Request& a, const Request& b) { return a.length() > b.length(); });
    const auto most = model_.takes_padding() ? static_cast<std::size_t>(options_.batch_size) : 1;
    for (std::size_t first = 0; first < requests_.size(); first += most) {
      score(std::span(requests_).subspan(first, std::min(most, requests_.size() - first)), out);
    }
    for (ChoiceScores& scores : out) {
      choose(scores);
    }
    return out;
  }

 private:
  Request request_of(std::size_t item, std::size_t choice) {
    const std::string place = format("{}:{}, choice {}", name_, items_[item].line, choice);
    Request out{{}, item, choice};
    try {
      out.text = encode_choice(tokenizer_, items_[item].context, options_.delimiter + items_[item].choices[choice]);
    } catch (const Error& error) {
      fail(error.code(), "{}: {}", place, error.what());
    }
    const std::int64_t most = options_.max_positions + 1;
    if (options_.max_positions > 0 && static_cast<std::int64_t>(out.text.ids.size()) > most) {
      KF_CHECK(out.text.continuation < most, Code::data, "{}: the answer has {} tokens, and the model takes {} (model.max_seq_len)", place,
               out.text.continuation, options_.max_positions);
      out.text.ids.erase(out.text.ids.begin(), out.text.ids.end() - most);
      ++cut_;
    }
    return out;
  }

  /// Rows are filled up on the right: what comes later is seen by nothing that is scored.
  void score(std::span<const Request> batch, std::vector<ChoiceScores>& out) {
    const std::int64_t width = batch.front().length();
    const at::Tensor tokens = at::zeros({static_cast<std::int64_t>(batch.size()), width}, at::kLong);
    std::vector<std::int64_t> places;   // flat positions whose logits are wanted
    std::vector<std::int64_t> targets;  // what should follow there
    for (std::size_t row = 0; row < batch.size(); ++row) {
      const std::vector<std::int64_t>& ids = batch[row].text.ids;
      const auto start = static_cast<std::int64_t>(row) * width;
      std::copy(ids.begin(), ids.end() - 1, tokens.data_ptr<std::int64_t>() + start);
      for (std::int64_t t = batch[row].length() - batch[row].text.continuation; t < batch[row].length(); ++t) {
        places.push_back(start + t);
        targets.push_back(ids[static_cast<std::size_t>(t) + 1]);
      }
    }
    const at::Tensor found = log_probabilities(tokens, places, targets);
    const double* next = found.const_data_ptr<double>();
    for (const Request& request : batch) {
      double& sum = out[request.item].loglikelihoods[request.choice];
      for (std::int64_t t = 0; t < request.text.continuation; ++t) {
        sum += *next++;
      }
    }
  }

  /// (N) double on the host.
  at::Tensor log_probabilities(const at::Tensor& tokens, const std::vector<std::int64_t>& places,
                               const std::vector<std::int64_t>& targets) {
    ForwardContext context;
    const at::Tensor index = at::tensor(places, at::kLong).to(options_.device);
    const at::Tensor input = tokens.to(options_.device);
    const at::Tensor logits = model_.head()
                                  ? model_.project(model_.hidden(input, context).flatten(0, 1).index_select(0, index).unsqueeze(0))
                                  : model_.forward(input, context).flatten(0, 1).index_select(0, index);
    const at::Tensor wide = logits.to(at::kFloat).view({static_cast<std::int64_t>(places.size()), -1}).log_softmax(-1);
    return wide.gather(1, at::tensor(targets, at::kLong).to(options_.device).unsqueeze(1))
        .squeeze(1)
        .to(at::kCPU, at::kDouble)
        .contiguous();
  }

  static void choose(ChoiceScores& scores) {
    for (std::size_t i = 1; i < scores.loglikelihoods.size(); ++i) {
      const auto by_bytes = [&](std::size_t c) { return scores.loglikelihoods[c] / static_cast<double>(scores.bytes[c]); };
      if (scores.loglikelihoods[i] > scores.loglikelihoods[static_cast<std::size_t>(scores.best)]) {
        scores.best = static_cast<std::int64_t>(i);
      }
      if (by_bytes(i) > by_bytes(static_cast<std::size_t>(scores.best_by_bytes))) {
        scores.best_by_bytes = static_cast<std::int64_t>(i);
      }
    }
  }

  Model& model_;
  const Tokenizer& tokenizer_;
  const std::vector<ChoiceItem>& items_;
  const std::string& name_;
  const ChoiceOptions& options_;
  std::vector<Request> requests_;
  std::int64_t cut_ = 0;
};

}  // namespace

Accuracy accuracy_of(const std::vector<bool>& right) {
  const auto n = static_cast<double>(right.size());
  Accuracy out;
  out.value = static_cast<double>(std::count(right.begin(), right.end(), true)) / n;
  out.error = n > 1 ? std::sqrt(out.value * (1 - out.value) / (n - 1)) : 0;
  return out;
}

std::vector<ChoiceScores> score_choices(Model& model, const Tokenizer& tokenizer, const std::vector<ChoiceItem>& items,
                                        const std::string& name, const ChoiceOptions& options) {
  const at::NoGradGuard no_grad;
  const EvaluationMode mode(model);
  return Scoring(model, tokenizer, items, name, options).run();
}

}  // namespace kf
