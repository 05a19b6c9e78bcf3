#include "data/sequence/subset_dataset.h"

#include "core/error.h"
#include "core/text.h"

namespace kf {

SubsetDataset::SubsetDataset(std::unique_ptr<Dataset> all, double share, std::int64_t seed, const std::string& what)
    : all_(std::move(all)),
      size_(static_cast<std::int64_t>(share * static_cast<double>(all_->size()))),
      places_(all_->size(), mix_keys(static_cast<std::uint64_t>(seed), static_cast<std::uint64_t>(all_->size()))) {
  KF_CHECK(
      size_ > 0, Code::data,
      "{}: data.simulate_tokens / data.target_tokens = {} of {} samples is less than one; raise data.simulate_tokens or bring more data",
      what, share, all_->size());
}

std::int64_t SubsetDataset::in_all(std::int64_t index) const {
  KF_CHECK(index >= 0 && index < size_, Code::data, "sample {} asked for, the data set has {}", index, size_);
  return places_.at(index);
}

std::string SubsetDataset::describe() const {
  return format("{}; {} of {} sequences", all_->describe(), grouped(size_), grouped(all_->size()));
}

}  // namespace kf
