// The training data of one rank: files, mixtures or synthetic ids, in order, made ahead by threads.

#include <algorithm>
#include <utility>

#include "config/plan/derived.h"
#include "config/schema/config.h"
#include "core/error.h"
#include "core/log.h"
#include "core/text.h"
#include "data/loader/batch_transforms.h"
#include "data/loader/loader.h"
#include "data/loader/prefetch.h"
#include "data/loader/source_tally.h"
#include "data/loader/train_order.h"
#include "data/loader/uneven_loader.h"
#include "data/order/mixture.h"
#include "data/sequence/collate.h"
#include "data/source/train_data.h"

namespace kf {
namespace {

/// Batches made by data.num_workers threads, or by the asking one.
class AheadLoader : public Loader {
 public:
  AheadLoader(const config::Config& config, const LoaderOptions& options, bool any_thread) : reuse_(config.data.reuse_batches) {
    const std::int64_t workers = config.data.num_workers;
    if (workers > 0 && any_thread) {
      // All micro-batches of an update are asked for at once.
      const config::BatchPlan plan(config.train, options.world);
      std::int64_t micros = plan.micros(0);
      for (const config::BatchStage& stage : config.train.batch_schedule) {
        micros = std::max(micros, plan.micros(stage.start));
      }
      prefetch_ = std::make_unique<Prefetch>(workers, std::max(workers * config.data.prefetch_factor, micros));
    } else if (workers > 0) {
      log::info("data.num_workers = {}: data sets in Lua are read by the training thread", workers);
    }
  }

  Batch batch(std::int64_t index) final {
    const std::int64_t number = reuse_ > 0 ? index % reuse_ : index;
    if (!prefetch_) {
      return plan(number)();
    }
    return prefetch_->get(number, reuse_ > 0 ? reuse_ : end(), [this](std::int64_t i) { return plan(i); });
  }
  std::int64_t end() const final { return reuse_ > 0 ? kEndless : data_end(); }

 protected:
  virtual Prefetch::Task plan(std::int64_t index) = 0;
  virtual std::int64_t data_end() const = 0;
  void forget_ahead() {
    if (prefetch_) {
      prefetch_->clear();
    }
  }

 private:
  std::int64_t reuse_;
  std::unique_ptr<Prefetch> prefetch_;
};

/// Batches of files or of a mixture.
class TrainLoader final : public AheadLoader {
 public:
  TrainLoader(const config::Config& config, TrainData data, const LoaderOptions& options)
      : AheadLoader(config, options, data.data->any_thread()),
        config_(config),
        options_(options),
        apart_(keep_apart(config, data, config.data.pack_sequences, "data.pack_sequences")) {
    TrainOrder order = make_train_order(config, data, options);
    streams_.push_back({0, std::move(data), std::move(order), config.train.seq_len});
  }

  std::int64_t batches_per_epoch() const override { return streams_.front().order.order.batches_per_epoch(); }
  std::string describe() const override {
    const double share = config_.data.holdout;
    const std::string held = share > 0 ? "; " + percent(share) + " held out" : "";
    return streams_.front().data.data->describe() + held;
  }
  std::string fingerprint() const override {
    const double share = config_.data.holdout;
    return fingerprint_lines(streams_.front().data) + (share > 0 ? "\nholdout=" + to_text(share) : "");
  }
  std::vector<std::string> sources() const override {
    const std::optional<MixtureSpec>& mixture = streams_.front().data.mixture;
    return mixture ? mixture->names : std::vector<std::string>();
  }
  std::vector<double> passes(std::int64_t index) override {
    const auto read = [this](std::int64_t micro, std::vector<double>& shares) {
      const Stream& stream = stream_of(micro);
      for (const std::int64_t sample : stream.order.order.samples(micro)) {
        const auto source = static_cast<std::size_t>(stream.data.data->source_of(sample));
        shares[source] += static_cast<double>(options_.world) / static_cast<double>(stream.data.mixture->sizes[source]);
      }
    };
    return tally_.until(index, sources().size(), read);
  }

  void check(const DataChange& change) const override {
    const std::int64_t seq_len = change.seq_len.value_or(config_.train.seq_len);
    const std::int64_t batch_size = change.batch_size.value_or(config_.train.batch_size);
    if (seq_len == config_.train.seq_len) {
      make_plain_order(config_, streams_.front().data, options_, change.weights, batch_size);
    } else {
      make_plain_order(config_, open(seq_len), options_, change.weights, batch_size);
    }
  }

  void change(std::int64_t index, const DataChange& change) override {
    forget_ahead();
    tally_.forget();
    if (change.seq_len && *change.seq_len != streams_.back().seq_len) {
      append(index, *change.seq_len, change);
      return;
    }
    change_order(streams_.back().order, index, change, config_, streams_.back().data, options_);
    weights_ = change.weights ? change.weights : weights_;
  }

 protected:
  Prefetch::Task plan(std::int64_t index) override {
    const Stream& stream = stream_of(index);
    const CollateOptions how{stream.seq_len, apart_.apart, apart_.eos, options_.pinned};
    return [data = stream.data.data, mixed = stream.data.mixture.has_value(), samples = stream.order.order.samples(index), how] {
      Batch batch = collate(*data, samples, how);
      if (mixed) {
        for (const std::int64_t sample : samples) {
          batch.sources.push_back(data->source_of(sample));
        }
      }
      return batch;
    };
  }
  std::int64_t data_end() const override { return streams_.back().order.order.end(config_.data.epochs); }

 private:
  /// Batches of one window length, from micro-batch `first` on.
  struct Stream {
    std::int64_t first = 0;
    TrainData data;
    TrainOrder order;
    std::int64_t seq_len = 0;
  };

  const Stream& stream_of(std::int64_t index) const {
    std::size_t i = streams_.size() - 1;
    while (i > 0 && streams_[i].first > index) {
      --i;
    }
    return streams_[i];
  }

  TrainData open(std::int64_t seq_len) const {
    config::Config config = config_;
    config.train.seq_len = seq_len;
    return open_train_data(config, options_, {config.data.holdout, Side::training});
  }

  void append(std::int64_t index, std::int64_t seq_len, const DataChange& change) {
    weights_ = change.weights ? change.weights : weights_;
    const std::int64_t batch_size = change.batch_size.value_or(streams_.back().order.order.position(index).size);
    TrainData data = open(seq_len);
    TrainOrder order = make_plain_order(config_, data, options_, weights_, batch_size);
    order.order.restart(index, streams_.back().order.order);
    if (index == streams_.back().first && streams_.size() > 1) {
      streams_.pop_back();
    }
    streams_.push_back({index, std::move(data), std::move(order), seq_len});
  }

  config::Config config_;
  LoaderOptions options_;
  Apart apart_;
  std::vector<Stream> streams_;
  std::optional<MixtureWeights> weights_;  // as last changed
  SourceTally tally_;
};

/// Random ids: sample after sample, none twice, no epochs.
class SyntheticLoader final : public AheadLoader {
 public:
  SyntheticLoader(const config::Config& config, TrainData data, const LoaderOptions& options)
      : AheadLoader(config, options, true),
        apart_(keep_apart(config, data, config.data.pack_sequences, "data.pack_sequences")),
        data_(std::move(data.data)),
        options_(options) {
    plain_phases(nullptr, phases_of(config.data));  // for its checks
    stretches_.push_back({0, 0, config.train.batch_size, config.train.seq_len});
  }

  std::int64_t batches_per_epoch() const override { return data_->size() / (stretches_.front().batch_size * options_.world); }
  std::string describe() const override { return data_->describe(); }
  std::string fingerprint() const override { return data_->fingerprint(); }

  void check(const DataChange& change) const override {
    KF_CHECK(!change.weights || change.weights->empty(), Code::data,
             "the weight of data set '{}' is set, but there is no mixture: list the data sets in data.datasets",
             change.weights->begin()->first);
  }
  void change(std::int64_t index, const DataChange& change) override {
    check(change);
    forget_ahead();
    const Stretch& last = stretches_.back();
    KF_CHECK(index >= last.first, Code::data, "the order of micro-batch {} is set already; a change at {} comes too late", last.first,
             index);
    const Stretch next{index, last.row + (index - last.first) * last.batch_size, change.batch_size.value_or(last.batch_size),
                       change.seq_len.value_or(last.seq_len)};
    stretches_.push_back(next);
  }

 protected:
  Prefetch::Task plan(std::int64_t index) override {
    const Stretch& stretch = stretch_of(index);
    std::vector<std::int64_t> samples;
    for (std::int64_t row = 0; row < stretch.batch_size; ++row) {
      samples.push_back((stretch.row + (index - stretch.first) * stretch.batch_size + row) * options_.world + options_.rank);
    }
    const CollateOptions how{stretch.seq_len, apart_.apart, apart_.eos, options_.pinned};
    return [data = data_, samples = std::move(samples), how] { return collate(*data, samples, how); };
  }
  std::int64_t data_end() const override { return kEndless; }

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

  Apart apart_;
  std::shared_ptr<const Dataset> data_;
  LoaderOptions options_;
  std::vector<Stretch> stretches_;
};

}  // namespace

namespace {

/// The job whose micro-batches are the pieces of this one's.
config::Config in_pieces(config::Config config, const config::BatchPlan& plan) {
  config.train.batch_size = plan.piece();
  config.data.reuse_batches *= plan.pieces_per_micro();
  return config;
}

}  // namespace

std::unique_ptr<Loader> make_train_loader(const config::Config& config, const LoaderOptions& options) {
  const config::BatchPlan plan(config.train, options.world);
  const config::Config pieces = in_pieces(config, plan);
  TrainData data = open_train_data(pieces, options, {config.data.holdout, Side::training});
  warn_of(pieces, data);
  std::unique_ptr<Loader> loader;
  if (is_synthetic(config.data)) {
    loader = std::make_unique<SyntheticLoader>(pieces, std::move(data), options);
  } else {
    loader = std::make_unique<TrainLoader>(pieces, std::move(data), options);
  }
  return with_batch_transforms(joined(std::move(loader), plan), config.data.batch_transforms, config, options, true);
}

}  // namespace kf
