#pragma once
// Several data sets read as one, each with a weight.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/order/sampler.h"
#include "data/sequence/dataset.h"

namespace kf {

/// The concatenation of named data sets: sample `index` of it is sample `index - offsets()[i]` of data set i.
class MixtureDataset final : public Dataset {
 public:
  /// Throws Code::data without data sets, or when there is not one name for each.
  MixtureDataset(std::vector<std::unique_ptr<Dataset>> datasets, std::vector<std::string> names);

  std::int64_t size() const override { return offsets_.back(); }
  std::int64_t inputs(std::int64_t index, std::int64_t seq_len) const override;
  void get(std::int64_t index, std::span<std::int64_t> window) const override;
  void row(std::int64_t index, std::optional<std::int64_t> eos, const RowView& out) const override;
  bool packed() const override;
  bool any_thread() const override;
  std::string describe() const override;
  std::string fingerprint() const override;
  std::vector<std::string> source_fingerprints() const override;

  /// 0, n0, n0 + n1, ...: one more than there are data sets.
  const std::vector<std::int64_t>& offsets() const { return offsets_; }
  std::vector<std::string> sources() const override { return names_; }
  std::vector<std::int64_t> sizes() const;
  std::int64_t source_of(std::int64_t index) const override;

 private:
  std::vector<std::unique_ptr<Dataset>> datasets_;
  std::vector<std::string> names_;
  std::vector<std::int64_t> offsets_;
};

/// Draws from each data set in proportion to its weight. An epoch is as long as all data sets together, whatever the weights: a data set
/// with a large weight is repeated in its own order, one with a small weight is cut. One generator (seed + epoch), the same on all ranks,
/// permutes each data set with a positive target in turn and then the combined list (KempnerForge, section 8.6).
class MixtureSampler final : public ListSampler {
 public:
  /// `weights` need not sum to 1. Temperature T: p = w / sum(w) at 1, else softmax(ln(max(w, 1e-12)) / T).
  /// Throws Code::data for an empty list, negative weights, a sum of 0, and as many weights as there are not data sets.
  MixtureSampler(std::vector<std::int64_t> sizes, const std::vector<double>& weights, double temperature, const SamplerOptions& options);

  std::int64_t size() const override { return size_; }
  std::vector<std::int64_t> order(std::int64_t epoch) const override;

  /// Takes effect with the next call of `order`.
  void set_weights(const std::vector<double>& weights, double temperature);
  const std::vector<double>& probabilities() const { return probabilities_; }
  /// Samples of each data set in one epoch of one rank; their sum is size().
  const std::vector<std::int64_t>& target_counts() const { return targets_; }

 private:
  void append_source(std::size_t source, std::int64_t offset, Permutations& permutations, std::vector<std::int64_t>& out) const;

  std::vector<std::int64_t> sizes_;
  SamplerOptions options_;
  std::int64_t size_ = 0;
  std::vector<double> probabilities_;
  std::vector<std::int64_t> targets_;
};

/// p of each weight; throws as MixtureSampler does.
std::vector<double> mixture_probabilities(const std::vector<double>& weights, double temperature);
/// round-half-even(p * total), with the residue given as +-1 in order of descending p.
std::vector<std::int64_t> mixture_targets(const std::vector<double>& probabilities, std::int64_t total);

}  // namespace kf
