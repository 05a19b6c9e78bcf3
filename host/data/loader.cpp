#include "data/loader.h"

#include <algorithm>
#include <utility>

#include "config/config.h"
#include "core/error.h"
#include "core/text.h"
#include "data/collate.h"
#include "data/source.h"
#include "data/train_data.h"

namespace kf {

void Loader::change(std::int64_t /*index*/, const DataChange& /*change*/) {
  fail(Code::data, "{} cannot change while it is read", describe());
}

void Loader::check(const DataChange& /*change*/) const { fail(Code::data, "{} cannot change while it is read", describe()); }

std::string percent(double share) {
  const std::string text = fixed(100 * share, 1);
  return (text.ends_with(".0") ? text.substr(0, text.size() - 2) : text) + " %";
}

namespace {

/// Every window in order, ranks in turn; packing does not apply. The last batches of a rank may be short, or empty.
class EvalLoader final : public Loader {
 public:
  EvalLoader(std::shared_ptr<const Dataset> data, const config::Config& config, const LoaderOptions& options, std::string prefix)
      : data_(std::move(data)),
        options_(options),
        batch_size_(config.train.batch_size),
        seq_len_(config.train.seq_len),
        steps_(config.eval.steps),
        prefix_(std::move(prefix)) {}

  Batch batch(std::int64_t index) override {
    KF_CHECK(index >= 0 && index < batches_per_epoch(), Code::data, "evaluation batch {} asked for, there are {}", index,
             batches_per_epoch());
    std::vector<std::int64_t> samples;
    for (std::int64_t row = 0; row < batch_size_; ++row) {
      const std::int64_t sample = (index * batch_size_ + row) * options_.world + options_.rank;
      if (sample < data_->size()) {
        samples.push_back(sample);
      }
    }
    return collate(*data_, samples, seq_len_, std::nullopt);
  }
  std::int64_t batches_per_epoch() const override {
    const std::int64_t all_ranks = batch_size_ * options_.world;
    const std::int64_t all = (data_->size() + all_ranks - 1) / all_ranks;
    return steps_ < 0 ? all : std::min(steps_, all);
  }
  double lr_scale(std::int64_t) const override { return 1.0; }
  std::string describe() const override { return format("{}{}, {} windows", prefix_, data_->describe(), grouped(data_->size())); }
  std::string fingerprint() const override { return data_->fingerprint(); }

 private:
  std::shared_ptr<const Dataset> data_;
  LoaderOptions options_;
  std::int64_t batch_size_;
  std::int64_t seq_len_;
  std::int64_t steps_;
  std::string prefix_;
};

}  // namespace

std::unique_ptr<Loader> make_eval_loader(const config::Config& config, const LoaderOptions& options) {
  if (!config.eval.enabled) {
    return nullptr;
  }
  if (!config.eval.dataset_path.empty() || config.eval.hf_dataset_name) {
    OpenSource source = open_source(evaluation_source(config), source_options(config, options.registries), {});
    return std::make_unique<EvalLoader>(std::move(source.data), config, options, "");
  }
  KF_CHECK(
      config.data.holdout > 0 && !is_synthetic(config.data), Code::data,
      "eval.enabled = true, but there is nothing to evaluate on: set eval.dataset_path, or data.holdout to a share of the training text");
  TrainData data = open_train_data(config, options, {config.data.holdout, Side::held_out}, false);
  return std::make_unique<EvalLoader>(std::move(data.data), config, options, percent(config.data.holdout) + " held out of ");
}

}  // namespace kf
