#include "train/step/weight_histograms.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <limits>
#include <string>

namespace kf {
namespace {

// Behind the counts of a row: how it is summed over ranks.
constexpr std::int64_t kSum = kBuckets;
constexpr std::int64_t kSquares = kBuckets + 1;
constexpr std::int64_t kMax = kBuckets + 2;  // and that of the negated numbers, so that both are joined by the largest
constexpr std::int64_t kMinusMin = kBuckets + 3;
constexpr std::int64_t kRow = kBuckets + 4;
constexpr std::int64_t kPiece = std::int64_t{1} << 22U;  // numbers at a time: a bucket's count in fp32 is exact

/// Which bucket each number belongs to, from -kBucketsASign to kBucketsASign, as fp32.
at::Tensor places_of(const at::Tensor& numbers) {
  at::Tensor place = numbers.abs().log2_().mul_(kBucketsAnOctave).floor_();
  place.clamp_(kLowestOctave * kBucketsAnOctave - 1, kHighestOctave * kBucketsAnOctave - 1);
  return place.sub_(kLowestOctave * kBucketsAnOctave - 1).mul_(numbers.sign());
}

/// (kRow) doubles on the tensor's device.
at::Tensor row_of(const at::Tensor& tensor) {
  const at::Tensor all = tensor.detach().reshape({-1});
  at::Tensor row = at::zeros({kRow}, all.options().dtype(at::kDouble));
  row.narrow(0, kMax, 2).fill_(-std::numeric_limits<double>::infinity());
  for (std::int64_t begin = 0; begin < all.numel(); begin += kPiece) {
    const at::Tensor numbers = all.narrow(0, begin, std::min(kPiece, all.numel() - begin)).to(at::kFloat);
    row.narrow(0, 0, kBuckets).add_(at::histc(places_of(numbers), kBuckets, -kBucketsASign - 0.5, kBucketsASign + 0.5));
    row.select(0, kSum).add_(numbers.sum(at::kDouble));
    row.select(0, kSquares).add_(at::linalg_vector_norm(numbers).to(at::kDouble).square());
    const auto [least, most] = at::aminmax(numbers);
    for (const auto& [place, value] : {std::pair{kMax, most}, std::pair{kMinusMin, least.neg()}}) {
      const at::Tensor so_far = row.select(0, place);
      so_far.copy_(at::maximum(so_far, value.to(at::kDouble)));
    }
  }
  return row;
}

Histogram histogram_of(std::string name, const double* row) {
  Histogram out;
  out.name = std::move(name);
  out.counts.assign(row, row + kBuckets);
  out.sum = row[kSum];
  out.sum_squares = row[kSquares];
  out.max = row[kMax];
  out.min = -row[kMinusMin];
  return out;
}

}  // namespace

WeightHistograms::WeightHistograms(std::int64_t interval, const ParameterList& parameters, const World& world)
    : interval_(interval), world_(world) {
  if (interval > 0) {
    std::copy_if(parameters.begin(), parameters.end(), std::back_inserter(parameters_),
                 [](const ParameterPtr& parameter) { return parameter->trainable && !parameter->buffer; });
  }
}

bool WeightHistograms::counts(const Parameter& parameter) const { return world_.along(Axis::dp_replicate).rank() == 0 && parameter.first; }

void WeightHistograms::gradients() {
  const at::NoGradGuard no_grad;
  for (const ParameterPtr& parameter : parameters_) {
    const at::Tensor gradient = counts(*parameter) ? parameter->gradient() : at::Tensor();
    gradients_.push_back(gradient.defined() && gradient.numel() > 0 ? row_of(gradient) : at::Tensor());
  }
}

Histograms WeightHistograms::take(std::int64_t step) {
  const at::NoGradGuard no_grad;
  gradients_.resize(parameters_.size());
  const at::Tensor none = at::zeros({kRow}, at::kDouble);
  none.narrow(0, kMax, 2).fill_(-std::numeric_limits<double>::infinity());
  std::vector<at::Tensor> rows;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor& master = parameters_[i]->master;
    const at::Tensor weight = counts(*parameters_[i]) && master.defined() && master.numel() > 0 ? row_of(master) : at::Tensor();
    for (const at::Tensor& row : {gradients_[i], weight}) {
      rows.push_back(row.defined() ? row : none.to(master.defined() ? master.device() : at::kCPU));
    }
  }
  gradients_.clear();
  Histograms out{step, {}};
  if (rows.empty()) {
    return out;
  }
  const at::Tensor all = at::stack(rows).to(at::kCPU);  // (2 parameters, kRow)
  at::Tensor sums = all.narrow(1, 0, kMax).contiguous();
  at::Tensor most = all.narrow(1, kMax, 2).contiguous();
  world_.all().sum(sums);
  world_.all().largest(most);
  if (!world_.leads()) {
    return out;
  }
  const at::Tensor joined = at::cat({sums, most}, 1);
  const double* row = joined.const_data_ptr<double>();
  for (const ParameterPtr& parameter : parameters_) {
    for (const char* kind : {"gradients/", "weights/"}) {
      if (std::any_of(row, row + kBuckets, [](double count) { return count > 0; })) {
        out.all.push_back(histogram_of(kind + parameter->name, row));
      }
      row += kRow;
    }
  }
  return out;
}

}  // namespace kf
