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
#include "data/part_dataset.h"
#include "data/phases.h"
#include "data/sampler.h"
#include "data/source.h"
#include "data/synthetic.h"
#include "data/tokenizer/tokenizer.h"

namespace kf {

void Loader::change(std::int64_t /*index*/, const DataChange& /*change*/) {
  fail(Code::data, "{} cannot change while it is read", describe());
}

void Loader::check(const DataChange& /*change*/) const { fail(Code::data, "{} cannot change while it is read", describe()); }

namespace {

/// What [data] stands for, opened.
struct TrainData {
  std::shared_ptr<const Dataset> data;
  std::optional<MixtureSpec> mixture;  // with data.datasets
  bool text = false;                   // any of it is text
  std::optional<std::int64_t> eos;     // the tokenizer's own, which ends its documents
  bool tokens = false;                 // any of it is token files
};

bool is_synthetic(const config::DataConfig& data) { return data.datasets.empty() && data.dataset_path.empty() && !data.hf_dataset_name; }

/// The name of each source of the mixture, as phases and logs know it.
std::vector<std::string> source_names(const std::vector<config::DatasetSource>& sources) {
  std::vector<std::string> names;
  std::map<std::string, std::size_t> taken;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const config::DatasetSource& source = sources[i];
    names.push_back(!source.name.empty()      ? source.name
                    : !source.dataset.empty() ? source.dataset
                    : !source.path.empty()    ? source.path
                                              : source.hf_name);
    const auto [at, fresh] = taken.emplace(names.back(), i);
    KF_CHECK(fresh, Code::data, "data.datasets[{}] and data.datasets[{}] are both called '{}'; give one of them another name", at->second,
             i, names.back());
  }
  return names;
}

OpenSource open_mixture_source(const config::Config& config, const LoaderOptions& options, const SourcePart& part, std::size_t i) {
  const config::DatasetSource& source = config.data.datasets[i];
  const std::string key = format("data.datasets[{}]", i);
  if (!source.dataset.empty()) {
    KF_CHECK(
        part.holdout == 0, Code::data,
        "data.holdout = {} keeps documents of text for evaluation, but {} is the data set '{}', which has none; set data.holdout = 0 and "
        "give eval.dataset_path",
        part.holdout, key, source.dataset);
    return open_part(config, options.registries, source.dataset, key);
  }
  SourceOptions how = source_options(config, options.registries);
  if (source.text_field) {
    how.text_field = *source.text_field;
    how.text_field_key = key + ".text_field";
  }
  return open_source(mixture_source(config, i), how, part);
}

TrainData open_mixture(const config::Config& config, const LoaderOptions& options, const SourcePart& part) {
  const std::vector<config::DatasetSource>& sources = config.data.datasets;
  TrainData out;
  out.mixture = MixtureSpec{source_names(sources), {}, {}, config.data.mix_temperature};
  std::vector<std::unique_ptr<Dataset>> opened;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    OpenSource source = open_mixture_source(config, options, part, i);
    (source.text ? out.text : out.tokens) = true;
    out.eos = source.eos ? source.eos : out.eos;
    opened.push_back(std::move(source.data));
    out.mixture->sizes.push_back(opened.back()->size());
    out.mixture->weights.push_back(sources[i].weight);
  }
  out.data = std::make_unique<MixtureDataset>(std::move(opened), out.mixture->names);
  return out;
}

TrainData open_train_data(const config::Config& config, const LoaderOptions& options, const SourcePart& part) {
  const config::DataConfig& data = config.data;
  if (!data.datasets.empty()) {
    return open_mixture(config, options, part);
  }
  if (!data.dataset_path.empty() || data.hf_dataset_name) {
    OpenSource source = open_source(training_source(config), source_options(config, options.registries), part);
    return {std::move(source.data), std::nullopt, source.text, source.eos, !source.text};
  }
  return {std::make_unique<SyntheticDataset>(config.model.vocab_size, config::data_seed(config.train)), std::nullopt, false, std::nullopt,
          true};
}

/// What a user should know of the data before training on it. (That one key wins over another, the rules of the job have said.)
void warn_of(const config::Config& config, const TrainData& data) {
  if (is_synthetic(config.data)) {
    log::warn("no data is given (data.dataset_path, data.datasets): training on synthetic data, uniform random ids");
  }
  if (data.text && data.tokens) {
    log::warn(
        "the mixture has both ids (token files, data sets that are parts) and text: they only mean the same if both come from one "
        "tokenizer");
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
  KF_CHECK(!given || !data.text || !config.data.tokenizer_path.empty() || *given == kByteEos, Code::data,
           "data.eos_id = {}, but text read as bytes ends its documents with {}; leave data.eos_id out", *given, kByteEos);
  KF_CHECK(!given || *given < config.model.vocab_size, Code::data, "data.eos_id = {} is not below model.vocab_size ({})", given.value_or(0),
           config.model.vocab_size);
  return given.value_or(data.eos.value_or(kByteEos));
}

SamplerOptions train_sampler(const config::Config& config, const LoaderOptions& options) {
  return {options.rank, options.world, config::data_seed(config.train), true, true};
}

std::vector<OrderPhase> train_phases(const config::Config& config, const TrainData& data, const LoaderOptions& options) {
  const SamplerOptions sampler = train_sampler(config, options);
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
      : config_(config), options_(options), eos_(packing_eos(config, data)) {
    Order order(train_phases(config, data, options), config.train.batch_size, config::BatchPlan(config.train, options.world));
    streams_.push_back({0, std::move(data), std::move(order), config.train.seq_len});
  }

  Batch batch(std::int64_t index) override {
    std::size_t i = streams_.size() - 1;
    while (i > 0 && streams_[i].first > index) {
      --i;
    }
    Stream& stream = streams_[i];
    return collate(*stream.data.data, stream.order.samples(index), stream.seq_len, eos_);
  }
  std::int64_t batches_per_epoch() const override { return streams_.front().order.batches_per_epoch(); }
  double lr_scale(std::int64_t step) const override { return streams_.front().order.lr_scale(step); }
  std::string describe() const override {
    const double share = config_.data.holdout;
    return streams_.front().data.data->describe() + (share > 0 ? "; " + percent(share) + " held out" : "");
  }
  std::string fingerprint() const override {
    Digest digest;
    digest.add(streams_.front().data.data->fingerprint());
    digest.add(to_text(config_.data.holdout));
    return digest.hex();
  }

  void check(const DataChange& change) const override {
    const std::int64_t seq_len = change.seq_len.value_or(config_.train.seq_len);
    const std::int64_t batch_size = change.batch_size.value_or(config_.train.batch_size);
    if (seq_len == config_.train.seq_len) {
      Order({{0, 1.0, sampler(streams_.front().data, change.weights)}}, batch_size, 1);
    } else {
      const TrainData data = open(seq_len);
      Order({{0, 1.0, sampler(data, change.weights)}}, batch_size, 1);
    }
  }

  void change(std::int64_t index, const DataChange& change) override {
    if (change.seq_len && *change.seq_len != streams_.back().seq_len) {
      append(index, *change.seq_len, change);
      return;
    }
    const auto own = change.weights ? sampler(streams_.back().data, change.weights) : nullptr;
    weights_ = change.weights ? change.weights : weights_;
    streams_.back().order.change(index, own, change.batch_size.value_or(0));
  }

 private:
  /// Batches of one window length, from micro-batch `first` on.
  struct Stream {
    std::int64_t first = 0;
    TrainData data;
    Order order;
    std::int64_t seq_len = 0;
  };

  TrainData open(std::int64_t seq_len) const {
    config::Config config = config_;
    config.train.seq_len = seq_len;
    return open_train_data(config, options_, {config.data.holdout, Side::training});
  }

  /// Of the whole data, or of the mixture with other weights.
  std::shared_ptr<const Sampler> sampler(const TrainData& data, const std::optional<std::map<std::string, double>>& weights) const {
    const SamplerOptions options = train_sampler(config_, options_);
    if (data.mixture) {
      return std::make_shared<MixtureSampler>(data.mixture->sizes,
                                              mixture_weights(*data.mixture, weights.value_or(std::map<std::string, double>{})),
                                              data.mixture->temperature, options);
    }
    KF_CHECK(!weights || weights->empty(), Code::data,
             "the weight of data set '{}' is set, but there is no mixture: list the data sets in data.datasets", weights->begin()->first);
    return std::make_shared<DistributedSampler>(data.data->size(), options);
  }

  void append(std::int64_t index, std::int64_t seq_len, const DataChange& change) {
    weights_ = change.weights ? change.weights : weights_;
    const std::int64_t batch_size = change.batch_size.value_or(streams_.back().order.position(index).size);
    TrainData data = open(seq_len);
    Order order({{0, 1.0, sampler(data, weights_)}}, batch_size, 1);
    order.restart(index, streams_.back().order);
    if (index == streams_.back().first && streams_.size() > 1) {
      streams_.pop_back();
    }
    streams_.push_back({index, std::move(data), std::move(order), seq_len});
  }

  config::Config config_;
  LoaderOptions options_;
  std::optional<std::int64_t> eos_;
  std::vector<Stream> streams_;
  std::optional<std::map<std::string, double>> weights_;  // as last changed
};

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

/// Random ids: sample after sample, none twice, no epochs.
class SyntheticLoader final : public Loader {
 public:
  SyntheticLoader(const config::Config& config, TrainData data, const LoaderOptions& options)
      : eos_(packing_eos(config, data)), phases_(phases_of(config.data)), data_(std::move(data.data)), options_(options) {
    plain_phases(nullptr, phases_);  // for its checks
    stretches_.push_back({0, 0, config.train.batch_size, config.train.seq_len});
  }

  Batch batch(std::int64_t index) override {
    const Stretch& stretch = stretch_of(index);
    std::vector<std::int64_t> samples;
    for (std::int64_t row = 0; row < stretch.batch_size; ++row) {
      samples.push_back((stretch.row + (index - stretch.first) * stretch.batch_size + row) * options_.world + options_.rank);
    }
    return collate(*data_, samples, stretch.seq_len, eos_);
  }
  std::int64_t batches_per_epoch() const override { return data_->size() / (stretches_.front().batch_size * options_.world); }
  double lr_scale(std::int64_t step) const override {
    double scale = 1.0;
    for (const config::TrainingPhase& phase : phases_) {
      scale = phase.start_step <= step ? phase.lr_scale : scale;
    }
    return scale;
  }
  std::string describe() const override { return data_->describe(); }
  std::string fingerprint() const override { return data_->fingerprint(); }

  void check(const DataChange& change) const override {
    KF_CHECK(!change.weights || change.weights->empty(), Code::data,
             "the weight of data set '{}' is set, but there is no mixture: list the data sets in data.datasets",
             change.weights->begin()->first);
  }
  void change(std::int64_t index, const DataChange& change) override {
    check(change);
    const Stretch& last = stretches_.back();
    KF_CHECK(index >= last.first, Code::data, "the order of micro-batch {} is set already; a change at {} comes too late", last.first,
             index);
    const Stretch next{index, last.row + (index - last.first) * last.batch_size, change.batch_size.value_or(last.batch_size),
                       change.seq_len.value_or(last.seq_len)};
    stretches_.push_back(next);
  }

 private:
  struct Stretch {
    std::int64_t first = 0;  // micro-batch
    std::int64_t row = 0;    // rows of this rank before it
    std::int64_t batch_size = 1;
    std::int64_t seq_len = 1;
  };
  const Stretch& stretch_of(std::int64_t index) const {
    std::size_t i = stretches_.size() - 1;
    while (i > 0 && stretches_[i].first > index) {
      --i;
    }
    return stretches_[i];
  }

  std::optional<std::int64_t> eos_;
  std::vector<config::TrainingPhase> phases_;
  std::shared_ptr<const Dataset> data_;
  LoaderOptions options_;
  std::vector<Stretch> stretches_;
};

}  // namespace

std::unique_ptr<Loader> make_train_loader(const config::Config& config, const LoaderOptions& options) {
  TrainData data = open_train_data(config, options, {config.data.holdout, Side::training});
  warn_of(config, data);
  if (is_synthetic(config.data)) {
    return std::make_unique<SyntheticLoader>(config, std::move(data), options);
  }
  return std::make_unique<TrainLoader>(config, std::move(data), options);
}

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
  TrainData data = open_train_data(config, options, {config.data.holdout, Side::held_out});
  return std::make_unique<EvalLoader>(std::move(data.data), config, options, percent(config.data.holdout) + " held out of ");
}

}  // namespace kf
