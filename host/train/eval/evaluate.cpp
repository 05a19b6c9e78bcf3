#include "train/eval/evaluate.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "kernels/linear_loss/output_head.h"
#include "metrics/numbers.h"
#include "model/mode.h"
#include "model/own_draws.h"
#include "model/pipelined_model.h"
#include "model/transformer/mtp.h"
#include "model/weight_unit.h"
#include "parallel/graph.h"
#include "parallel/group.h"
#include "train/eval/label_bytes.h"
#include "train/step/look_ahead.h"
#include "train/step/losses.h"
#include "train/step/to_device.h"

namespace kf {
namespace {

constexpr std::int64_t kChunk = 4096;  // positions

/// Sums of a batch, left on the device.
struct DeviceSums {
  at::Tensor loss;  // 0-dim double
  at::Tensor hits;  // 0-dim int64
  at::Tensor ahead, accepted;

  /// logits (N, V), labels (N) -> the likeliest ids (N)
  at::Tensor add(const at::Tensor& logits, const at::Tensor& labels) {
    loss += CrossEntropy().sum(logits, labels);
    at::Tensor likeliest = logits.argmax(-1);
    hits += likeliest.eq(labels).sum();
    return likeliest;
  }

  /// Of the layer `depth` (from 1) of multi-token prediction: how often its likeliest token is the one that the model itself finds
  /// likeliest when it comes to that place (MaxText's acceptance rate). `own` (B, T): the model's likeliest ids; `guess` (B, T): the
  /// layer's.
  void compare(const Batch& batch, const at::Tensor& own, const at::Tensor& guess, std::int64_t depth) {
    const at::Tensor counts = labels_ahead(batch, depth).ne(kIgnore);
    ahead += counts.sum();
    accepted += tokens_ahead(own, depth).eq(guess).logical_and(counts).sum();
  }
};

/// Whole logits (N, V) of hidden states (N, C), from the rows of the head that lie on the ranks of `vocabulary`; null: all lie here.
at::Tensor logits_of(const at::Tensor& hidden, const OutputHead& head, Group* vocabulary) {
  const at::Tensor logits = shape_logits(head_product(hidden, head).to(at::kFloat), head);
  return vocabulary == nullptr ? logits : joined(logits, 1, logits.size(1) * vocabulary->size(), *vocabulary);
}

/// The likeliest ids (N) of hidden states (N, C), a piece at a time, each with what `take` makes of its logits.
template <class Take>
at::Tensor in_pieces(const at::Tensor& hidden, const OutputHead& head, Group* vocabulary, const Take& take) {
  std::vector<at::Tensor> out;
  for (std::int64_t first = 0; first < hidden.size(0); first += kChunk) {
    const std::int64_t count = std::min(kChunk, hidden.size(0) - first);
    out.push_back(take(logits_of(hidden.narrow(0, first, count), head, vocabulary), first, count));
  }
  return at::cat(out);
}

/// `model`: all of it, or what is left from the last stage of a pipeline on.
void add_scores(DeviceSums& sums, Model& model, const Batch& batch, const EvalOptions& options, ForwardContext& context) {
  const std::vector<at::Tensor>& ahead = context.results->ahead;
  const at::Tensor labels = batch.labels.flatten();
  const std::optional<OutputHead> head = options.in_chunks ? model.head() : std::nullopt;
  const at::Tensor likeliest = head ? in_pieces(model.hidden(batch.tokens, context).flatten(0, 1), *head, options.vocabulary,
                                                [&](const at::Tensor& logits, std::int64_t first, std::int64_t count) {
                                                  return sums.add(logits, labels.narrow(0, first, count));
                                                })
                                    : sums.add(model.forward(batch.tokens, context).flatten(0, 1), labels);
  if (!context.looks_ahead) {
    return;
  }
  KF_CHECK(static_cast<std::int64_t>(ahead.size()) >= options.mtp_head, Code::config,
           "eval.mtp_head ({}) asks for a layer of multi-token prediction, and the model leaves {}; use model.mtp_layers, or leave it out",
           options.mtp_head, ahead.size());
  const at::Tensor hidden = ahead[static_cast<std::size_t>(options.mtp_head) - 1].flatten(0, 1);
  const at::Tensor guess =
      head ? in_pieces(hidden, *head, options.vocabulary, [](const at::Tensor& logits, auto, auto) { return logits.argmax(-1); })
           : model.project(hidden).argmax(-1);
  sums.compare(batch, likeliest.view_as(batch.labels), guess.view_as(batch.labels), options.mtp_head);
}

void add_batch(DeviceSums& sums, Model& model, const Batch& batch, const EvalOptions& options) {
  ForwardResults results;
  ForwardContext context;
  context.results = &results;
  context.doc_ids = batch.doc_ids;
  context.looks_ahead = options.mtp_head > 0;
  if (PipelinedModel* const pipeline = as_pipeline(model)) {  // the first stage goes on to the next batch meanwhile
    pipeline->through(batch.tokens, context, [&](Model& tail) { add_scores(sums, tail, batch, options, context); });
    return;
  }
  add_scores(sums, model, batch, options, context);
}

std::int64_t bytes_of(const Batch& batch, const Tokenizer& tokenizer) {
  const auto width = static_cast<std::size_t>(batch.tokens.size(1));
  std::int64_t total = 0;
  for (std::int64_t row = 0; row < batch.tokens.size(0); ++row) {
    const at::Tensor tokens = batch.tokens[row].contiguous();
    const at::Tensor labels = batch.labels[row].contiguous();
    total += label_bytes(tokenizer, {tokens.const_data_ptr<std::int64_t>(), width}, {labels.const_data_ptr<std::int64_t>(), width});
  }
  return total;
}

/// Over the sets that count and have a loss at all; nothing where one of them has no such number, or there is none.
std::optional<double> mean(const std::vector<EvalResult>& sets, const std::vector<bool>& together,
                           std::optional<double> (*number)(const EvalResult&)) {
  double sum = 0;
  std::int64_t count = 0;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    if (together[i] && sets[i].has_loss()) {
      const std::optional<double> value = number(sets[i]);
      if (!value) {
        return std::nullopt;
      }
      sum += *value;
      ++count;
    }
  }
  return count > 0 ? std::optional(sum / static_cast<double>(count)) : std::nullopt;
}

/// A sequence of which nothing counts, for a rank whose share is shorter.
Batch stand_in(const Batch& empty) {
  const Shape shape{1, std::max<std::int64_t>(1, empty.tokens.size(-1))};
  Batch out;
  out.tokens = at::zeros(shape, at::kLong);
  out.labels = at::full(shape, kIgnore, at::kLong);
  return out;
}

EvalSums of_all_ranks(const EvalSums& mine, Group& data) {
  const at::Tensor loss = at::full({1}, mine.loss, at::kDouble);
  const at::Tensor counts = at::tensor({mine.tokens, mine.hits, mine.bytes, mine.sequences, mine.ahead, mine.accepted}, at::kLong);
  data.sum(loss);
  data.sum(counts);
  const auto* const count = counts.const_data_ptr<std::int64_t>();
  return {loss.item<double>(), count[0], count[1], count[2], count[3], count[4], count[5]};
}

}  // namespace

EvalSums& EvalSums::operator+=(const EvalSums& other) {
  loss += other.loss;
  tokens += other.tokens;
  hits += other.hits;
  bytes += other.bytes;
  sequences += other.sequences;
  ahead += other.ahead;
  accepted += other.accepted;
  return *this;
}

EvalResult EvalSums::result(std::int64_t step, const std::string& what) const {
  KF_CHECK(sequences > 0, Code::data, "the evaluation data ({}) holds no sequence", what);
  EvalResult out;
  out.step = step;
  if (tokens == 0) {
    log::warn("the evaluation data ({}) have no label that counts: all of their {} sequences are masked, so that they have no loss", what,
              sequences);
    out.loss = out.perplexity = std::nan("");
    return out;
  }
  out.loss = loss / static_cast<double>(tokens);
  out.perplexity = perplexity(out.loss);
  out.tokens = tokens;
  out.accuracy = static_cast<double>(hits) / static_cast<double>(tokens);
  if (ahead > 0) {
    out.mtp_acceptance = static_cast<double>(accepted) / static_cast<double>(ahead);
  }
  if (bytes > 0) {
    out.bits_per_byte = loss / std::log(2.0) / static_cast<double>(bytes);
  }
  return out;
}

EvalSums evaluate_sums(Model& model, Loader& data, const EvalOptions& options) {
  const at::NoGradGuard no_grad;
  const EvaluationMode mode(model);
  const WholeWeights whole(model);
  const OwnDraws draws(options.device, options.seed, "evaluation");
  const at::TensorOptions place = at::TensorOptions(options.device);
  const auto none = [&] { return at::zeros({}, place.dtype(at::kLong)); };
  DeviceSums device{at::zeros({}, place.dtype(at::kDouble)), none(), none(), none()};
  EvalSums sums;
  for (std::int64_t index = 0; index < data.batches_per_epoch(); ++index) {
    if (options.pulse) {
      options.pulse();
    }
    const Batch batch = data.batch(index);
    if (batch.tokens.size(0) == 0) {  // of a rank whose share is shorter
      if (options.together) {
        add_batch(device, model, to_device(stand_in(batch), options.device), options);
      }
      continue;
    }
    sums.sequences += batch.tokens.size(0);
    sums.tokens += batch.counted;
    sums.bytes += options.tokenizer != nullptr ? bytes_of(batch, *options.tokenizer) : 0;
    add_batch(device, model, to_device(batch, options.device), options);
  }
  if (PipelinedModel* const pipeline = as_pipeline(model)) {  // one stage has scores
    for (const at::Tensor& sum : {device.loss, device.hits, device.ahead, device.accepted}) {
      pipeline->ranks().sum(sum);
    }
  }
  sums.loss = device.loss.item<double>();
  sums.hits = device.hits.item<std::int64_t>();
  sums.ahead = device.ahead.item<std::int64_t>();
  sums.accepted = device.accepted.item<std::int64_t>();
  return options.data != nullptr && options.data->size() > 1 ? of_all_ranks(sums, *options.data) : sums;
}

EvalResult evaluate(Model& model, Optimizer& optimizer, Loader& data, const EvalOptions& options, std::int64_t at_step) {
  const WithAverages averages(optimizer);
  return evaluate_sums(model, data, options).result(at_step, data.describe());
}

EvalResult join(std::vector<EvalResult> sets, const std::vector<bool>& together) {
  EvalResult out;
  out.step = sets.front().step;
  out.loss = mean(sets, together, [](const EvalResult& set) { return std::optional(set.loss); }).value_or(std::nan(""));
  out.perplexity = std::isnan(out.loss) ? out.loss : perplexity(out.loss);
  for (std::size_t i = 0; i < sets.size(); ++i) {
    out.tokens += together[i] ? sets[i].tokens : 0;
  }
  out.ema = mean(sets, together, [](const EvalResult& set) { return set.ema; });
  out.bits_per_byte = mean(sets, together, [](const EvalResult& set) { return set.bits_per_byte; });
  out.accuracy = mean(sets, together, [](const EvalResult& set) { return set.accuracy; });
  out.mtp_acceptance = mean(sets, together, [](const EvalResult& set) { return set.mtp_acceptance; });
  out.sets = std::move(sets);
  return out;
}

}  // namespace kf
