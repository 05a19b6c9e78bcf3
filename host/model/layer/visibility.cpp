#include "model/layer/visibility.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace kf {
namespace {

/// The index at which the document of each position began: (B, T) -> (B, T).
at::Tensor begins_of(const at::Tensor& doc_ids) {
  const at::Tensor index = at::arange(doc_ids.size(1), doc_ids.options()).expand_as(doc_ids);
  at::Tensor begins = at::ones_like(doc_ids, at::kBool);
  begins.narrow(1, 1, doc_ids.size(1) - 1).copy_(doc_ids.narrow(1, 1, doc_ids.size(1) - 1).ne(doc_ids.narrow(1, 0, doc_ids.size(1) - 1)));
  return std::get<0>(at::where(begins, index, at::zeros_like(index)).cummax(1));
}

at::Tensor positions_in(const at::Tensor& doc_ids) {
  return at::arange(doc_ids.size(1), doc_ids.options()).expand_as(doc_ids) - begins_of(doc_ids);
}

/// How many positions the document of each one has: (B, T) -> (B, T). Seen from behind a document begins where it ends.
at::Tensor lengths_in(const at::Tensor& doc_ids) {
  const at::Tensor ends = doc_ids.size(1) - begins_of(doc_ids.flip({1})).flip({1});  // one behind the last
  return ends - begins_of(doc_ids);
}

}  // namespace

Visibility::Visibility(const at::Tensor& doc_ids) : fresh_(doc_ids.size(1)), device_(doc_ids.device()), doc_ids_(doc_ids) {}

Visibility::Visibility(std::shared_ptr<const SequencePart> part)
    : fresh_(part->positions.size(0)), device_(part->positions.device()), part_(std::move(part)) {
  if (part_->doc_ids.defined()) {
    whole_positions_ = positions_in(part_->doc_ids);
    positions_ = own_positions(whole_positions_, 1, *part_);
    lengths_ = own_positions(lengths_in(part_->doc_ids), 1, *part_);
  } else {
    positions_ = part_->positions.unsqueeze(0);
  }
}

at::Tensor Visibility::positions() const {
  if (!positions_.defined()) {
    positions_ = doc_ids_.defined() ? positions_in(doc_ids_) : places(past_, past_ + fresh_);
  }
  return positions_;
}

at::Tensor Visibility::lengths() const {
  if (lengths_.defined()) {
    return lengths_;
  }
  if (doc_ids_.defined()) {
    lengths_ = lengths_in(doc_ids_);
  } else if (ends_.defined()) {
    lengths_ = ends_.unsqueeze(1);
  } else if (starts_.defined()) {
    lengths_ = (past_ + fresh_ - starts_).unsqueeze(1);
  }
  return lengths_;
}

at::Tensor Visibility::places(std::int64_t first, std::int64_t end) const {
  const at::Tensor index = at::arange(first, end, at::TensorOptions(device_).dtype(at::kLong)).unsqueeze(0);
  return starts_.defined() ? (index - starts_.unsqueeze(1)).clamp_min(0) : index;
}

bool Visibility::plain(const Reach& reach) const {
  if (part_ != nullptr) {
    return false;
  }
  const bool near = reach.kind == Reach::Kind::global || past_ + fresh_ <= reach.size;
  return near && !doc_ids_.defined() && !starts_.defined() && (past_ == 0 || fresh_ == 1);
}

at::Tensor Visibility::first_keys(const Reach& reach) const {
  const at::Tensor query = at::arange(past_, past_ + fresh_, at::TensorOptions(device_).dtype(at::kLong)).unsqueeze(0);  // (1, T)
  at::Tensor first = at::zeros_like(query);
  if (doc_ids_.defined()) {
    first = begins_of(doc_ids_);
  } else if (starts_.defined()) {
    first = at::minimum(starts_.unsqueeze(1), query);  // padding sees itself: a softmax over nothing is no number
  }
  if (reach.kind == Reach::Kind::local) {
    return at::maximum(first, query - (reach.size - 1));
  }
  return reach.kind == Reach::Kind::chunk ? at::maximum(first, query - positions().remainder(reach.size)) : first;
}

std::shared_ptr<const KeyRanges> Visibility::ranges(const Reach& reach) const {
  if (plain(reach)) {
    return nullptr;
  }
  for (const auto& [known, ranges] : ranges_) {
    if (known == reach) {
      return ranges;
    }
  }
  ranges_.emplace_back(reach, std::make_shared<KeyRanges>(first_keys(reach), past_ + fresh_));
  return ranges_.back().second;
}

std::shared_ptr<const KeyRanges> Visibility::ranges_between(const Reach& reach, const Span& queries, const Span& keys) const {
  const at::Tensor query = at::arange(queries.begin, queries.end(), at::TensorOptions(device_).dtype(at::kLong)).unsqueeze(0);  // (1, T)
  const at::Tensor places = part_->doc_ids.defined() ? whole_positions_.narrow(1, queries.begin, queries.size) : query;
  at::Tensor first = query - places;  // of the document
  if (reach.kind == Reach::Kind::local) {
    first = at::maximum(first, query - (reach.size - 1));
  } else if (reach.kind == Reach::Kind::chunk) {
    first = at::maximum(first, query - places.remainder(reach.size));
  }
  return std::make_shared<KeyRanges>((first - keys.begin).clamp(0, keys.size), keys.size, queries.begin - keys.begin);
}

at::Tensor Visibility::mask(const Reach& reach) const {
  if (part_ == nullptr) {
    const std::shared_ptr<const KeyRanges> ranges = this->ranges(reach);
    return ranges != nullptr ? ranges->mask() : at::Tensor();
  }
  for (const auto& [known, mask] : masks_) {
    if (known == reach) {
      return mask;
    }
  }
  masks_.emplace_back(reach, mask_of_part(reach));
  return masks_.back().second;
}

at::Tensor Visibility::mask_of_part(const Reach& reach) const {
  std::vector<at::Tensor> rows;
  for (const Span& piece : part_->pieces()) {
    rows.push_back(ranges_between(reach, piece, {0, part_->cut.length()})->mask());
  }
  return at::cat(rows, 2);
}

Span Visibility::seen_keys(const Reach& reach, const Span& queries) {
  const std::int64_t first = reach.kind == Reach::Kind::local ? std::max<std::int64_t>(0, queries.begin - reach.size + 1) : 0;
  return {first, queries.end() - first};
}

Sight Visibility::between(const Reach& reach, const Span& queries, const Span& keys) const {
  const std::int64_t last_query = queries.end() - 1, last_key = keys.end() - 1;
  const auto chunk = [&](std::int64_t position) { return position / reach.size; };
  const bool apart = part_->doc_ids.defined();
  const bool local = reach.kind == Reach::Kind::local;
  const bool chunked = reach.kind == Reach::Kind::chunk;
  if (keys.begin > last_query || (local && queries.begin - last_key >= reach.size) ||
      (chunked && !apart && chunk(last_key) < chunk(queries.begin))) {
    return {Sight::Kind::none, {}};
  }
  const bool near = reach.kind == Reach::Kind::global || (local && last_query - keys.begin < reach.size) ||
                    (chunked && chunk(std::min(queries.begin, keys.begin)) == chunk(std::max(last_query, last_key)));
  if (!apart && near && last_key <= queries.begin) {
    return {Sight::Kind::all, {}};
  }
  if (!apart && near && queries == keys) {
    return {Sight::Kind::triangle, {}};
  }
  const auto seen = [](const std::shared_ptr<const KeyRanges>& ranges) {
    return Sight{ranges != nullptr ? Sight::Kind::some : Sight::Kind::none, ranges};
  };
  const Block block{reach, queries, keys};
  for (const auto& [known, ranges] : blocks_) {
    if (known == block) {
      return seen(ranges);
    }
  }
  std::shared_ptr<const KeyRanges> ranges = ranges_between(reach, queries, keys);
  if (device_.is_cpu() && ranges->first().min().item<std::int64_t>() == keys.size) {
    ranges = nullptr;  // documents that do not meet; a GPU would have to be waited for
  }
  blocks_.emplace_back(block, ranges);
  return seen(ranges);
}

}  // namespace kf
