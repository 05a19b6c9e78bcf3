#include "sweep/parzen.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kf::sweep {
namespace {

/// The newest 25 count fully, older ones less, down to 1/n (Bergstra et al. 2013).
std::vector<double> observation_weights(std::size_t n) {
  constexpr std::size_t full = 25;
  std::vector<double> out(n, 1.0);
  const std::size_t ramp = n > full ? n - full : 0;
  const double first = 1.0 / static_cast<double>(std::max<std::size_t>(n, 1));
  for (std::size_t i = 0; i < ramp; ++i) {
    out[i] = ramp == 1 ? first : first + (1 - first) * static_cast<double>(i) / static_cast<double>(ramp - 1);
  }
  return out;
}

/// The distance to the farther neighbour, for each mean; not below a share of the range that shrinks with the number of kernels.
std::vector<double> bandwidths(const std::vector<double>& means, double low, double high) {
  const std::size_t n = means.size();
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&means](std::size_t a, std::size_t b) { return means[a] < means[b]; });
  const double widest = high - low;
  const double narrowest = widest / std::min(100.0, 2.0 + static_cast<double>(n));
  std::vector<double> out(n);
  for (std::size_t rank = 0; rank < n; ++rank) {
    const double here = means[order[rank]];
    const double below = here - (rank > 0 ? means[order[rank - 1]] : low);
    const double above = (rank + 1 < n ? means[order[rank + 1]] : high) - here;
    // The bounds are no neighbours where there are real ones.
    const double distance = n >= 2 && rank == 0 ? above : n >= 2 && rank + 1 == n ? below : std::max(below, above);
    out[order[rank]] = std::clamp(distance, narrowest, widest);
  }
  return out;
}

}  // namespace

ParzenEstimator::ParzenEstimator(const std::vector<Distribution>& space, const std::vector<std::vector<double>>& observations)
    : weights_(observation_weights(observations.size())) {
  weights_.push_back(1);
  const double total = std::accumulate(weights_.begin(), weights_.end(), 0.0);
  for (double& weight : weights_) {
    weight /= total;
  }
  for (std::size_t j = 0; j < space.size(); ++j) {
    std::vector<double> column;
    for (const std::vector<double>& row : observations) {
      column.push_back(row[j]);
    }
    axes_.push_back(space[j].numeric() ? numeric_axis(space[j], std::move(column)) : choice_axis(space[j], column));
  }
}

ParzenEstimator::Axis ParzenEstimator::numeric_axis(const Distribution& distribution, std::vector<double> means) {
  Axis axis;
  axis.distribution = distribution;
  axis.low = distribution.low - distribution.step / 2;
  axis.high = distribution.high + distribution.step / 2;
  if (distribution.log) {
    axis.low = std::log(axis.low);
    axis.high = std::log(axis.high);
    std::transform(means.begin(), means.end(), means.begin(), [](double mean) { return std::log(mean); });
  }
  axis.sigmas = bandwidths(means, axis.low, axis.high);
  axis.means = std::move(means);
  axis.means.push_back((axis.low + axis.high) / 2);
  axis.sigmas.push_back(axis.high - axis.low);
  return axis;
}

ParzenEstimator::Axis ParzenEstimator::choice_axis(const Distribution& distribution, const std::vector<double>& observed) {
  Axis axis;
  axis.distribution = distribution;
  const std::size_t kernels = observed.size() + 1;
  const std::size_t choices = distribution.choices.size();
  const double prior = 1.0 / static_cast<double>(kernels);
  for (std::size_t i = 0; i < kernels; ++i) {
    std::vector<double> row(choices, prior);
    if (i < observed.size()) {
      row[static_cast<std::size_t>(observed[i])] += 1;
    }
    const double total = std::accumulate(row.begin(), row.end(), 0.0);
    for (double& weight : row) {
      weight /= total;
    }
    axis.weights.push_back(std::move(row));
  }
  return axis;
}

std::vector<double> ParzenEstimator::sample(Random& random) const {
  double u = random.unit();
  std::size_t kernel = 0;
  while (kernel + 1 < weights_.size() && u >= weights_[kernel]) {
    u -= weights_[kernel++];
  }
  std::vector<double> out;
  for (const Axis& axis : axes_) {
    out.push_back(sample_axis(axis, kernel, random));
  }
  return out;
}

double ParzenEstimator::sample_axis(const Axis& axis, std::size_t kernel, Random& random) {
  if (!axis.distribution.numeric()) {
    const std::vector<double>& row = axis.weights[kernel];
    double u = random.unit();
    std::size_t index = 0;
    while (index + 1 < row.size() && u >= row[index]) {
      u -= row[index++];
    }
    return static_cast<double>(index);
  }
  const double x = random.truncated_normal(axis.means[kernel], axis.sigmas[kernel], axis.low, axis.high);
  return axis.distribution.nearest(axis.distribution.log ? std::exp(x) : x);
}

double ParzenEstimator::log_density(const std::vector<double>& point) const {
  std::vector<double> terms;
  for (std::size_t kernel = 0; kernel < weights_.size(); ++kernel) {
    double sum = std::log(weights_[kernel]);
    for (std::size_t j = 0; j < axes_.size(); ++j) {
      sum += log_density(axes_[j], kernel, point[j]);
    }
    terms.push_back(sum);
  }
  const double largest = *std::max_element(terms.begin(), terms.end());
  double sum = 0;
  for (const double term : terms) {
    sum += std::exp(term - largest);
  }
  return largest + std::log(sum);
}

double ParzenEstimator::log_density(const Axis& axis, std::size_t kernel, double stored) {
  const Distribution& d = axis.distribution;
  if (!d.numeric()) {
    return std::log(axis.weights[kernel][static_cast<std::size_t>(stored)]);
  }
  const double mean = axis.means[kernel];
  const double sigma = axis.sigmas[kernel];
  const double inside = log_normal_mass((axis.low - mean) / sigma, (axis.high - mean) / sigma);
  if (d.step > 0) {  // the mass of the value's bin
    const double left = d.log ? std::log(stored - d.step / 2) : stored - d.step / 2;
    const double right = d.log ? std::log(stored + d.step / 2) : stored + d.step / 2;
    return log_normal_mass((left - mean) / sigma, (right - mean) / sigma) - inside;
  }
  const double z = ((d.log ? std::log(stored) : stored) - mean) / sigma;
  return -z * z / 2 - std::log(sigma) - inside;  // sqrt(2 pi) is the same for both mixtures
}

}  // namespace kf::sweep
