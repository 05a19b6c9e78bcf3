#include "data/order/mixture.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/digest.h"
#include "core/error.h"
#include "core/text.h"

namespace kf {
namespace {

std::string listed(const std::vector<double>& weights) {
  std::vector<std::string> texts;
  for (const double weight : weights) {
    texts.push_back(to_text(weight));
  }
  return "[" + join(texts, ", ") + "]";
}

/// softmax(ln(max(w, 1e-12)) / T), shifted by the largest so that no exponent overflows.
std::vector<double> tempered(const std::vector<double>& weights, double temperature) {
  std::vector<double> out;
  for (const double weight : weights) {
    out.push_back(std::log(std::max(weight, 1e-12)) / temperature);
  }
  const double largest = *std::max_element(out.begin(), out.end());
  double sum = 0;
  for (double& value : out) {
    value = std::exp(value - largest);
    sum += value;
  }
  for (double& value : out) {
    value /= sum;
  }
  return out;
}

}  // namespace

MixtureDataset::MixtureDataset(std::vector<std::unique_ptr<Dataset>> datasets, std::vector<std::string> names)
    : datasets_(std::move(datasets)), names_(std::move(names)), offsets_{0} {
  KF_CHECK(!datasets_.empty(), Code::data, "a mixture needs at least one data set (data.datasets is empty)");
  KF_CHECK(datasets_.size() == names_.size(), Code::data, "a mixture needs one name for each data set: {} data sets, {} names",
           datasets_.size(), names_.size());
  for (const auto& dataset : datasets_) {
    offsets_.push_back(offsets_.back() + dataset->size());
  }
}

std::vector<std::int64_t> MixtureDataset::sizes() const {
  std::vector<std::int64_t> out;
  for (const auto& dataset : datasets_) {
    out.push_back(dataset->size());
  }
  return out;
}

std::int64_t MixtureDataset::source_of(std::int64_t index) const {
  KF_CHECK(index >= 0 && index < size(), Code::data, "sample {} asked for, the mixture has {}", index, size());
  return std::upper_bound(offsets_.begin(), offsets_.end(), index) - offsets_.begin() - 1;
}

std::int64_t MixtureDataset::inputs(std::int64_t index, std::int64_t seq_len) const {
  const auto source = static_cast<std::size_t>(source_of(index));
  return datasets_[source]->inputs(index - offsets_[source], seq_len);
}

void MixtureDataset::get(std::int64_t index, std::span<std::int64_t> window) const {
  const auto source = static_cast<std::size_t>(source_of(index));
  datasets_[source]->get(index - offsets_[source], window);
}

void MixtureDataset::row(std::int64_t index, std::optional<std::int64_t> eos, const RowView& out) const {
  const auto source = static_cast<std::size_t>(source_of(index));
  datasets_[source]->row(index - offsets_[source], eos, out);
}

bool MixtureDataset::packed() const {
  return std::any_of(datasets_.begin(), datasets_.end(), [](const auto& data) { return data->packed(); });
}

bool MixtureDataset::any_thread() const {
  return std::all_of(datasets_.begin(), datasets_.end(), [](const auto& data) { return data->any_thread(); });
}

std::string MixtureDataset::describe() const {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < datasets_.size(); ++i) {
    parts.push_back(names_[i] + ": " + datasets_[i]->describe());
  }
  return join(parts, "; ");
}

std::vector<std::string> MixtureDataset::source_fingerprints() const {
  std::vector<std::string> out;
  for (const auto& dataset : datasets_) {
    out.push_back(dataset->fingerprint());
  }
  return out;
}

std::string MixtureDataset::fingerprint() const {
  Digest digest;
  for (std::size_t i = 0; i < datasets_.size(); ++i) {
    digest.add(names_[i]);
    digest.add(datasets_[i]->fingerprint());
  }
  return digest.hex();
}

std::vector<double> mixture_probabilities(const std::vector<double>& weights, double temperature) {
  KF_CHECK(!weights.empty(), Code::data, "mixture weights: the list is empty; one weight for each data set is needed");
  KF_CHECK(std::all_of(weights.begin(), weights.end(), [](double w) { return w >= 0 && std::isfinite(w); }), Code::data,
           "mixture weights {} must be finite and non-negative", listed(weights));
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  KF_CHECK(sum > 0, Code::data, "mixture weights {} must sum to > 0: at least one data set needs a positive weight", listed(weights));
  KF_CHECK(temperature > 0, Code::data, "mixture temperature {} must be > 0", temperature);
  if (temperature != 1.0) {
    return tempered(weights, temperature);
  }
  std::vector<double> out;
  for (const double weight : weights) {
    out.push_back(weight / sum);
  }
  return out;
}

std::vector<std::int64_t> mixture_targets(const std::vector<double>& probabilities, std::int64_t total) {
  std::vector<std::int64_t> targets;
  for (const double p : probabilities) {
    targets.push_back(static_cast<std::int64_t>(std::nearbyint(p * static_cast<double>(total))));  // half to even
  }
  std::vector<std::size_t> by_share(probabilities.size());
  std::iota(by_share.begin(), by_share.end(), std::size_t{0});
  std::stable_sort(by_share.begin(), by_share.end(), [&](std::size_t a, std::size_t b) { return probabilities[a] > probabilities[b]; });
  std::int64_t residue = total - std::accumulate(targets.begin(), targets.end(), std::int64_t{0});
  for (std::size_t i = 0; residue != 0; i = (i + 1) % by_share.size()) {
    const std::int64_t one = residue > 0 ? 1 : -1;
    targets[by_share[i]] += one;
    residue -= one;
  }
  return targets;
}

MixtureSampler::MixtureSampler(std::vector<std::int64_t> sizes, const std::vector<double>& weights, double temperature,
                               const SamplerOptions& options)
    : sizes_(std::move(sizes)), options_(options) {
  check_rank(options);
  for (const std::int64_t size : sizes_) {
    size_ += share_size(size, options_);
  }
  set_weights(weights, temperature);
}

void MixtureSampler::set_weights(const std::vector<double>& weights, double temperature) {
  std::vector<double> probabilities = mixture_probabilities(weights, temperature);
  KF_CHECK(weights.size() == sizes_.size(), Code::data, "mixture weights {}: expected {} weights, one for each data set, got {}",
           listed(weights), sizes_.size(), weights.size());
  targets_ = mixture_targets(probabilities, size_);
  probabilities_ = std::move(probabilities);
}

void MixtureSampler::append_source(std::size_t source, std::int64_t offset, Permutations& permutations,
                                   std::vector<std::int64_t>& out) const {
  std::vector<std::int64_t> all;
  if (options_.shuffle) {
    all = permutations.next(sizes_[source]);
  } else {
    all.resize(static_cast<std::size_t>(sizes_[source]));
    std::iota(all.begin(), all.end(), std::int64_t{0});
  }
  SamplerOptions options = options_;
  // A data set with fewer samples than there are ranks still has its weight: its samples are shared.
  options.drop_last = options_.drop_last && sizes_[source] >= options_.world;
  const std::vector<std::int64_t> share = share_of_rank(all, options);
  KF_CHECK(!share.empty(), Code::data, "data set {} of the mixture has a positive weight and no samples", source);
  for (std::int64_t i = 0; i < targets_[source]; ++i) {
    out.push_back(offset + share[static_cast<std::size_t>(i) % share.size()]);
  }
}

std::vector<std::int64_t> MixtureSampler::order(std::int64_t epoch) const {
  Permutations permutations(options_.seed + epoch);
  std::vector<std::int64_t> combined;
  combined.reserve(static_cast<std::size_t>(size_));
  std::int64_t offset = 0;
  for (std::size_t source = 0; source < sizes_.size(); ++source) {
    if (targets_[source] > 0) {
      append_source(source, offset, permutations, combined);
    }
    offset += sizes_[source];
  }
  if (!options_.shuffle) {
    return combined;
  }
  std::vector<std::int64_t> out;
  out.reserve(combined.size());
  for (const std::int64_t place : permutations.next(size_)) {
    out.push_back(combined[static_cast<std::size_t>(place)]);
  }
  return out;
}

}  // namespace kf
