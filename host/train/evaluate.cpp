#include "train/evaluate.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "metrics/numbers.h"
#include "model/mode.h"
#include "train/fused_cross_entropy.h"
#include "train/label_bytes.h"
#include "train/losses.h"
#include "train/stepper.h"

namespace kf {
namespace {

constexpr std::int64_t kChunk = 4096;  // positions

/// Sums of a batch, left on the device.
struct DeviceSums {
  at::Tensor loss;  // 0-dim double
  at::Tensor hits;  // 0-dim int64

  void add(const at::Tensor& logits, const at::Tensor& labels) {  // (N, V), (N)
    loss += CrossEntropy().sum(logits, labels);
    hits += logits.argmax(-1).eq(labels).sum();
  }
};

void add_batch(DeviceSums& sums, Model& model, const Batch& batch, bool in_chunks) {
  ForwardContext context;
  context.doc_ids = batch.doc_ids;
  const at::Tensor labels = batch.labels.flatten();
  const std::optional<OutputHead> head = in_chunks ? model.head() : std::nullopt;
  if (!head) {
    sums.add(model.forward(batch.tokens, context).flatten(0, 1), labels);
    return;
  }
  const at::Tensor hidden = model.hidden(batch.tokens, context).flatten(0, 1);  // (N, C)
  for (std::int64_t first = 0; first < hidden.size(0); first += kChunk) {
    const std::int64_t count = std::min(kChunk, hidden.size(0) - first);
    const at::Tensor raw = head_product(hidden.narrow(0, first, count), *head).to(at::kFloat);
    sums.add(shape_logits(raw, *head), labels.narrow(0, first, count));
  }
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

}  // namespace

EvalSums& EvalSums::operator+=(const EvalSums& other) {
  loss += other.loss;
  tokens += other.tokens;
  hits += other.hits;
  bytes += other.bytes;
  sequences += other.sequences;
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
  if (bytes > 0) {
    out.bits_per_byte = loss / std::log(2.0) / static_cast<double>(bytes);
  }
  return out;
}

EvalSums evaluate_sums(Model& model, Loader& data, const EvalOptions& options) {
  const at::NoGradGuard no_grad;
  const EvaluationMode mode(model);
  const at::TensorOptions place = at::TensorOptions(options.device);
  DeviceSums device{at::zeros({}, place.dtype(at::kDouble)), at::zeros({}, place.dtype(at::kLong))};
  EvalSums sums;
  for (std::int64_t index = 0; index < data.batches_per_epoch(); ++index) {
    const Batch batch = data.batch(index);
    if (batch.tokens.size(0) == 0) {
      continue;  // of a rank whose share is shorter
    }
    sums.sequences += batch.tokens.size(0);
    sums.tokens += batch.counted;
    sums.bytes += options.tokenizer != nullptr ? bytes_of(batch, *options.tokenizer) : 0;
    add_batch(device, model, to_device(batch, options.device), options.in_chunks);
  }
  sums.loss = device.loss.item<double>();
  sums.hits = device.hits.item<std::int64_t>();
  return sums;
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
  out.sets = std::move(sets);
  return out;
}

}  // namespace kf
