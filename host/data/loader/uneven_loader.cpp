#include "data/loader/uneven_loader.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace kf {
namespace {

at::Tensor rows_of(const std::vector<Batch>& batches, at::Tensor Batch::*member) {
  std::vector<at::Tensor> parts;
  for (const Batch& batch : batches) {
    if ((batch.*member).defined()) {
      parts.push_back(batch.*member);
    }
  }
  if (parts.empty()) {
    return {};
  }
  const at::Tensor& first = parts.front();
  std::int64_t rows = 0;
  for (const at::Tensor& part : parts) {
    rows += part.size(0);
  }
  at::Tensor out = at::empty({rows, first.size(1)}, first.options().pinned_memory(first.device().is_cpu() && first.is_pinned()));
  return at::cat_out(out, parts);
}

Batch joined_batch(const std::vector<Batch>& batches) {
  Batch out;
  out.tokens = rows_of(batches, &Batch::tokens);
  out.labels = rows_of(batches, &Batch::labels);
  out.doc_ids = rows_of(batches, &Batch::doc_ids);
  for (const Batch& batch : batches) {
    out.counted += batch.counted;
    out.samples.insert(out.samples.end(), batch.samples.begin(), batch.samples.end());
    out.sources.insert(out.sources.end(), batch.sources.begin(), batch.sources.end());
  }
  return out;
}

class JoinedLoader final : public Loader {
 public:
  JoinedLoader(std::unique_ptr<Loader> pieces, const config::BatchPlan& plan) : pieces_(std::move(pieces)), plan_(plan) {}

  Batch batch(std::int64_t index) override {
    std::vector<Batch> parts;
    for (std::int64_t piece = plan_.first_piece(index); piece < plan_.first_piece(index + 1); ++piece) {
      parts.push_back(pieces_->batch(piece));
    }
    return parts.size() == 1 ? std::move(parts.front()) : joined_batch(parts);
  }

  std::int64_t batches_per_epoch() const override { return std::max<std::int64_t>(1, plan_.micros_within(pieces_->batches_per_epoch())); }
  double epochs(std::int64_t index) const override { return pieces_->epochs(plan_.first_piece(index)); }
  std::int64_t end() const override {
    const std::int64_t end = pieces_->end();
    return end == kEndless ? kEndless : plan_.micros_within(end);
  }
  std::vector<std::string> sources() const override { return pieces_->sources(); }
  std::vector<double> passes(std::int64_t index) override { return pieces_->passes(plan_.first_piece(index)); }
  std::string describe() const override { return pieces_->describe(); }
  std::string fingerprint() const override { return pieces_->fingerprint(); }
  void check(const DataChange& change) const override {
    KF_CHECK(!change.batch_size, Code::data,
             "the size of micro-batches cannot change while updates are no multiple of them (train.batch_size, train.global_batch_size)");
    pieces_->check(change);
  }
  void change(std::int64_t index, const DataChange& change) override {
    check(change);
    pieces_->change(plan_.first_piece(index), change);
  }

 private:
  std::unique_ptr<Loader> pieces_;
  config::BatchPlan plan_;
};

}  // namespace

std::unique_ptr<Loader> joined(std::unique_ptr<Loader> pieces, const config::BatchPlan& plan) {
  if (!plan.uneven()) {
    return pieces;
  }
  return std::make_unique<JoinedLoader>(std::move(pieces), plan);
}

}  // namespace kf
