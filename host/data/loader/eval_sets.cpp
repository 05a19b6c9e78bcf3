#include "data/loader/eval_sets.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "config/schema/config.h"
#include "core/error.h"
#include "core/text.h"
#include "data/loader/batch_transforms.h"
#include "data/sequence/collate.h"
#include "data/source/part_dataset.h"
#include "data/source/source.h"
#include "data/source/train_data.h"

namespace kf {
namespace {

/// Sequences in order, made as training makes them; ranks in turn.
class EvalLoader final : public Loader {
 public:
  EvalLoader(const TrainData& data, const config::Config& config, const LoaderOptions& options, std::int64_t steps, std::string prefix)
      : data_(data.data),
        fingerprint_(fingerprint_lines(data)),
        options_(options),
        batch_size_(config.eval.batch_size > 0 ? config.eval.batch_size : config.train.batch_size),
        prefix_(std::move(prefix)) {
    const bool all = steps < 0 || steps > data_->size() / batch_size_;  // the product may not fit
    const Apart apart = keep_apart(config, data, config.eval.pack_sequences, "eval.pack_sequences");
    how_ = {config.train.seq_len, apart.apart, apart.eos};
    windows_ = all ? data_->size() : steps * batch_size_;
  }

  Batch batch(std::int64_t index) override {
    KF_CHECK(index >= 0 && index < batches_per_epoch(), Code::data, "evaluation batch {} asked for, there are {}", index,
             batches_per_epoch());
    std::vector<std::int64_t> samples;
    for (std::int64_t row = 0; row < batch_size_; ++row) {
      const std::int64_t sample = (index * batch_size_ + row) * options_.world + options_.rank;
      if (sample < windows_) {
        samples.push_back(sample);
      }
    }
    return collate(*data_, samples, how_);
  }
  std::int64_t batches_per_epoch() const override {
    const std::int64_t all_ranks = batch_size_ * options_.world;
    return (windows_ + all_ranks - 1) / all_ranks;
  }
  std::string describe() const override { return format("{}{}, {} windows", prefix_, data_->describe(), grouped(data_->size())); }
  std::string fingerprint() const override { return fingerprint_; }

 private:
  std::shared_ptr<const Dataset> data_;
  std::string fingerprint_;
  CollateOptions how_;
  LoaderOptions options_;
  std::int64_t batch_size_;
  std::int64_t windows_ = 0;  // of the data set, those that are read
  std::string prefix_;
};

TrainData data_of(OpenSource source) {
  return {std::move(source.data), std::nullopt, source.text, source.eos, !source.text, {std::move(source.prints)}};
}

EvalSet named_set(const config::Config& config, const LoaderOptions& options, std::size_t i) {
  const config::EvalDataset& set = config.eval.datasets[i];
  const std::string key = format("eval.datasets[{}]", i);
  try {
    const TrainData data =
        data_of(set.dataset.empty() ? open_source(evaluation_source(config, i), evaluation_options(config, options.registries, i), {})
                                    : open_part(config, options.registries, set.dataset, key));
    return {set.name, std::make_unique<EvalLoader>(data, config, options, set.steps.value_or(config.eval.steps), set.name + ": "),
            set.interval.value_or(config.eval.interval), data.text};
  } catch (Error& error) {
    throw error.context(format("in the evaluation set '{}' ({})", set.name, key));
  }
}

EvalSet flat_set(const config::Config& config, const LoaderOptions& options) {
  const config::EvalConfig& eval = config.eval;
  std::string prefix;
  TrainData data;
  if (!eval.dataset_path.empty() || eval.hf_dataset_name) {
    data = data_of(open_source(evaluation_source(config), evaluation_options(config, options.registries), {}));
  } else {
    KF_CHECK(config.data.holdout > 0 && !is_synthetic(config.data), Code::data,
             "eval.enabled = true, but there is nothing to evaluate on: set eval.dataset_path, eval.datasets, or data.holdout to a share "
             "of the training text");
    data = open_train_data(config, options, {config.data.holdout, Side::held_out});
    prefix = percent(config.data.holdout) + " held out of ";
  }
  return {"", std::make_unique<EvalLoader>(data, config, options, eval.steps, prefix), eval.interval, data.text};
}

}  // namespace

std::vector<EvalSet> make_eval_sets(const config::Config& config, const LoaderOptions& options) {
  std::vector<EvalSet> sets;
  if (!config.eval.enabled) {
    return sets;
  }
  if (config.eval.datasets.empty()) {
    sets.push_back(flat_set(config, options));
  }
  for (std::size_t i = 0; i < config.eval.datasets.size(); ++i) {
    sets.push_back(named_set(config, options, i));
  }
  for (EvalSet& set : sets) {
    set.data = with_batch_transforms(std::move(set.data), config.eval.batch_transforms, config, options, false);
  }
  return sets;
}

}  // namespace kf
