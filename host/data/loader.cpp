#include "data/loader.h"

#include <algorithm>
#include <map>
#include <utility>

#include "config/config.h"
#include "config/derived.h"
#include "core/error.h"
#include "core/log.h"
#include "core/text.h"
#include "data/collate.h"
#include "data/digest.h"
#include "data/mixture.h"
#include "data/order.h"
#include "data/phases.h"
#include "data/sampler.h"
#include "data/source.h"
#include "data/synthetic.h"
#include "data/tokenizer/tokenizer.h"

namespace kf {
namespace {

/// What [data] stands for, opened.
struct TrainData {
  std::unique_ptr<Dataset> data;
  std::optional<MixtureSpec> mixture;  // with data.datasets
  bool text = false;                   // any of it is text read as bytes
  bool tokens = false;                 // any of it is token files
};

SourceSpec train_spec(const config::Config& config) {
  return {config.data.dataset_path, config.data.file_pattern, "data.dataset_path", "data.file_pattern"};
}

void refuse_hugging_face(bool wanted, std::string_view key, std::string_view name) {
  KF_CHECK(!wanted, Code::data, "{} = \"{}\": Hugging Face data sets are not built yet; give a path to token files or text instead", key,
           name);
}

/// The name of each source of the mixture, as phases and logs know it.
std::vector<std::string> source_names(const std::vector<config::DatasetSource>& sources) {
  std::vector<std::string> names;
  std::map<std::string, std::size_t> taken;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const config::DatasetSource& source = sources[i];
    names.push_back(!source.name.empty() ? source.name : !source.path.empty() ? source.path : source.hf_name);
    const auto [at, fresh] = taken.emplace(names.back(), i);
    KF_CHECK(fresh, Code::data, "data.datasets[{}] and data.datasets[{}] are both called '{}'; give one of them another name", at->second,
             i, names.back());
  }
  return names;
}

TrainData open_mixture(const config::Config& config, const SourcePart& part) {
  const std::vector<config::DatasetSource>& sources = config.data.datasets;
  TrainData out;
  out.mixture = MixtureSpec{source_names(sources), {}, {}, config.data.mix_temperature};
  std::vector<std::unique_ptr<Dataset>> opened;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const std::string key = format("data.datasets[{}]", i);
    refuse_hugging_face(sources[i].path.empty(), key + ".hf_name", sources[i].hf_name);
    const SourceSpec spec{sources[i].path, config.data.file_pattern, key + ".path", "data.file_pattern"};
    OpenSource source = open_source(spec, source_options(config), part);
    (source.text ? out.text : out.tokens) = true;
    opened.push_back(std::move(source.data));
    out.mixture->sizes.push_back(opened.back()->size());
    out.mixture->weights.push_back(sources[i].weight);
  }
  out.data = std::make_unique<MixtureDataset>(std::move(opened), out.mixture->names);
  return out;
}

TrainData open_train_data(const config::Config& config, const SourcePart& part) {
  const config::DataConfig& data = config.data;
  if (!data.datasets.empty()) {
    return open_mixture(config, part);
  }
  if (!data.dataset_path.empty()) {
    OpenSource source = open_source(train_spec(config), source_options(config), part);
    return {std::move(source.data), std::nullopt, source.text, !source.text};
  }
  refuse_hugging_face(data.hf_dataset_name.has_value(), "data.hf_dataset_name", data.hf_dataset_name.value_or(""));
  return {std::make_unique<SyntheticDataset>(config.model.vocab_size, config::data_seed(config.train)), std::nullopt, false, true};
}

/// What a user should know of the data before training on it. (That one key wins over another, the rules of the job have said.)
void warn_of(const config::Config& config, const TrainData& data) {
  if (config.data.datasets.empty() && config.data.dataset_path.empty()) {
    log::warn("no data is given (data.dataset_path, data.datasets): training on synthetic data, uniform random ids");
  }
  if (data.text && data.tokens) {
    log::warn("the mixture has both token files and text read as bytes: their ids only mean the same if the tokens are bytes, too");
  }
}

/// The id that ends a document, where documents are to be kept apart.
std::optional<std::int64_t> packing_eos(const config::Config& config, const TrainData& data) {
  if (!config.data.pack_sequences) {
    return std::nullopt;
  }
  const std::optional<std::int64_t>& given = config.data.eos_id;
  KF_CHECK(given || !data.tokens, Code::data,
           "data.pack_sequences = true needs data.eos_id, the id that ends a document: token files do not say which it is");
  KF_CHECK(!given || !data.text || *given == kByteEos, Code::data,
           "data.eos_id = {}, but text read as bytes ends its documents with {}; leave data.eos_id out", *given, kByteEos);
  KF_CHECK(!given || *given < config.model.vocab_size, Code::data, "data.eos_id = {} is not below model.vocab_size ({})", given.value_or(0),
           config.model.vocab_size);
  return given.value_or(kByteEos);
}

std::vector<OrderPhase> train_phases(const config::Config& config, const TrainData& data, const LoaderOptions& options) {
  const SamplerOptions sampler{options.rank, options.world, config::data_seed(config.train), true, true};
  const std::vector<config::TrainingPhase> phases = phases_of(config.data);
  if (data.mixture) {
    return mixture_phases(*data.mixture, phases, sampler);
  }
  return plain_phases(std::make_shared<DistributedSampler>(data.data->size(), sampler), phases);
}

std::string percent(double share) {
  const std::string text = fixed(100 * share, 1);
  return (text.ends_with(".0") ? text.substr(0, text.size() - 2) : text) + " %";
}

/// Shuffled batches of files or of a mixture.
class TrainLoader final : public Loader {
 public:
  TrainLoader(const config::Config& config, TrainData data, const LoaderOptions& options)
      : eos_(packing_eos(config, data)),
        order_(train_phases(config, data, options), config.train.batch_size, config::BatchPlan(config.train, options.world)),
        data_(std::move(data.data)),
        seq_len_(config.train.seq_len),
        holdout_(config.data.holdout) {}

  Batch batch(std::int64_t index) override { return collate(*data_, order_.samples(index), seq_len_, eos_); }
  std::int64_t batches_per_epoch() const override { return order_.batches_per_epoch(); }
  double lr_scale(std::int64_t step) const override { return order_.lr_scale(step); }
  std::string describe() const override { return data_->describe() + (holdout_ > 0 ? "; " + percent(holdout_) + " held out" : ""); }
  std::string fingerprint() const override {
    Digest digest;
    digest.add(data_->fingerprint());
    digest.add(to_text(holdout_));
    return digest.hex();
  }

 private:
  std::optional<std::int64_t> eos_;
  Order order_;
  std::unique_ptr<Dataset> data_;
  std::int64_t seq_len_;
  double holdout_;
};

/// Every window in order, ranks in turn; packing does not apply. The last batches of a rank may be short, or empty.
class EvalLoader final : public Loader {
 public:
  EvalLoader(std::unique_ptr<Dataset> data, const config::Config& config, const LoaderOptions& options, std::string prefix)
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
    return std::min(steps_, (data_->size() + all_ranks - 1) / all_ranks);
  }
  double lr_scale(std::int64_t) const override { return 1.0; }
  std::string describe() const override { return format("{}{}, {} windows", prefix_, data_->describe(), grouped(data_->size())); }
  std::string fingerprint() const override { return data_->fingerprint(); }

 private:
  std::unique_ptr<Dataset> data_;
  LoaderOptions options_;
  std::int64_t batch_size_;
  std::int64_t seq_len_;
  std::int64_t steps_;
  std::string prefix_;
};

/// Random ids: sample after sample, none twice, no epochs.
class SyntheticLoader final : public Loader {
 public:
  SyntheticLoader(const config::Config& config, TrainData data, const LoaderOptions& options)
      : eos_(packing_eos(config, data)),
        phases_(phases_of(config.data)),
        data_(std::move(data.data)),
        options_(options),
        batch_size_(config.train.batch_size),
        seq_len_(config.train.seq_len) {
    plain_phases(nullptr, phases_);  // for its checks
  }

  Batch batch(std::int64_t index) override {
    std::vector<std::int64_t> samples;
    for (std::int64_t row = 0; row < batch_size_; ++row) {
      samples.push_back((index * batch_size_ + row) * options_.world + options_.rank);
    }
    return collate(*data_, samples, seq_len_, eos_);
  }
  std::int64_t batches_per_epoch() const override { return data_->size() / (batch_size_ * options_.world); }
  double lr_scale(std::int64_t step) const override {
    double scale = 1.0;
    for (const config::TrainingPhase& phase : phases_) {
      scale = phase.start_step <= step ? phase.lr_scale : scale;
    }
    return scale;
  }
  std::string describe() const override { return data_->describe(); }
  std::string fingerprint() const override { return data_->fingerprint(); }

 private:
  std::optional<std::int64_t> eos_;
  std::vector<config::TrainingPhase> phases_;
  std::unique_ptr<Dataset> data_;
  LoaderOptions options_;
  std::int64_t batch_size_;
  std::int64_t seq_len_;
};

}  // namespace

std::unique_ptr<Loader> make_train_loader(const config::Config& config, const LoaderOptions& options) {
  TrainData data = open_train_data(config, {config.data.holdout, Side::training});
  warn_of(config, data);
  if (config.data.datasets.empty() && config.data.dataset_path.empty()) {
    return std::make_unique<SyntheticLoader>(config, std::move(data), options);
  }
  return std::make_unique<TrainLoader>(config, std::move(data), options);
}

std::unique_ptr<Loader> make_eval_loader(const config::Config& config, const LoaderOptions& options) {
  if (!config.eval.enabled) {
    return nullptr;
  }
  if (!config.eval.dataset_path.empty()) {
    const SourceSpec spec{config.eval.dataset_path, config.eval.file_pattern, "eval.dataset_path", "eval.file_pattern"};
    OpenSource source = open_source(spec, source_options(config), {});
    return std::make_unique<EvalLoader>(std::move(source.data), config, options, "");
  }
  refuse_hugging_face(config.eval.hf_dataset_name.has_value(), "eval.hf_dataset_name", config.eval.hf_dataset_name.value_or(""));
  KF_CHECK(
      config.data.holdout > 0 && !(config.data.datasets.empty() && config.data.dataset_path.empty()), Code::data,
      "eval.enabled = true, but there is nothing to evaluate on: set eval.dataset_path, or data.holdout to a share of the training text");
  TrainData data = open_train_data(config, {config.data.holdout, Side::held_out});
  return std::make_unique<EvalLoader>(std::move(data.data), config, options, percent(config.data.holdout) + " held out of ");
}

}  // namespace kf
