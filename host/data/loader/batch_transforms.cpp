#include "data/loader/batch_transforms.h"

#include <utility>

#include "config/schema/config.h"
#include "core/error.h"
#include "core/text.h"
#include "data/source/transform.h"

namespace kf {
namespace {

class TransformingLoader final : public Loader {
 public:
  TransformingLoader(std::unique_ptr<Loader> loader, std::vector<std::unique_ptr<Transform>> transforms, std::vector<std::string> names,
                     std::int64_t longest, bool training)
      : loader_(std::move(loader)), transforms_(std::move(transforms)), names_(std::move(names)), longest_(longest), training_(training) {}

  Batch batch(std::int64_t index) override {
    Batch batch = loader_->batch(index);
    if (batch.samples.empty()) {
      return batch;  // this rank's share of an evaluation's end
    }
    const BatchInfo info{index, training_, loader_->sources()};
    for (std::size_t i = 0; i < transforms_.size(); ++i) {
      transforms_[i]->apply(batch, info);
      KF_CHECK(batch.tokens.size(1) <= longest_, Code::script, "transform '{}' made a batch of {} positions; model.max_seq_len is {}",
               names_[i], batch.tokens.size(1), longest_);
    }
    return batch;
  }

  std::int64_t batches_per_epoch() const override { return loader_->batches_per_epoch(); }
  double epochs(std::int64_t index) const override { return loader_->epochs(index); }
  std::int64_t end() const override { return loader_->end(); }
  std::vector<std::string> sources() const override { return loader_->sources(); }
  std::vector<double> passes(std::int64_t index) override { return loader_->passes(index); }
  std::string describe() const override { return loader_->describe() + "; batches through " + join(names_, ", "); }
  std::string fingerprint() const override { return loader_->fingerprint(); }
  void change(std::int64_t index, const DataChange& change) override { loader_->change(index, change); }
  void check(const DataChange& change) const override { loader_->check(change); }

 private:
  std::unique_ptr<Loader> loader_;
  std::vector<std::unique_ptr<Transform>> transforms_;
  std::vector<std::string> names_;
  std::int64_t longest_;
  bool training_;
};

}  // namespace

std::unique_ptr<Loader> with_batch_transforms(std::unique_ptr<Loader> loader, const std::vector<std::string>& names,
                                              const config::Config& config, const LoaderOptions& options, bool training) {
  if (names.empty()) {
    return loader;
  }
  std::vector<std::unique_ptr<Transform>> transforms = make_transforms(names, config, options.registries);
  return std::make_unique<TransformingLoader>(std::move(loader), std::move(transforms), names, config.model.max_seq_len, training);
}

}  // namespace kf
