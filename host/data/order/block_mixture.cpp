#include "data/order/block_mixture.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "core/feistel.h"

namespace kf {
namespace {

constexpr std::uint64_t kOne = std::uint64_t{1} << 40;  // a share of 1
__extension__ using Wide = unsigned __int128;           // shares times sequences

std::int64_t down(Wide a, Wide b) { return static_cast<std::int64_t>(a / b); }
std::int64_t up(Wide a, Wide b) { return static_cast<std::int64_t>((a + b - 1) / b); }

std::int64_t sum(const std::vector<std::int64_t>& counts) { return std::accumulate(counts.begin(), counts.end(), std::int64_t{0}); }

/// In units of 2^-40, summing to 2^40: largest remainders. No positive probability becomes 0.
std::vector<std::uint64_t> shares_of(const std::vector<double>& probabilities) {
  const double total = std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
  std::vector<std::uint64_t> shares;
  std::uint64_t given = 0;
  for (const double p : probabilities) {
    const auto share = static_cast<std::uint64_t>(p / total * static_cast<double>(kOne));
    shares.push_back(p > 0 ? std::max<std::uint64_t>(1, share) : 0);
    given += shares.back();
  }
  // What rounding left over or took too much is at most one unit a source: the largest share does not feel it.
  *std::max_element(shares.begin(), shares.end()) += kOne - given;
  return shares;
}

}  // namespace

BlockMixture::BlockMixture(std::vector<std::int64_t> sizes, const std::vector<double>& probabilities, const BlockMixtureOptions& options)
    : sizes_(std::move(sizes)), options_(options) {
  KF_CHECK(options_.block > 0, Code::data, "data.mix_block ({}) must be above 0 here", options_.block);
  Stage stage;
  stage.base.assign(sizes_.size(), 0);
  set_shares(stage, probabilities);
  stages_.push_back(std::move(stage));
  find_end();
}

void BlockMixture::set_shares(Stage& stage, const std::vector<double>& probabilities) const {
  KF_CHECK(probabilities.size() == sizes_.size(), Code::data, "mixture weights: {} for {} sources", probabilities.size(), sizes_.size());
  std::vector<double> wanted = probabilities;
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    KF_CHECK(probabilities[i] <= 0 || sizes_[i] > 0, Code::data, "data set {} of the mixture has a positive weight and no samples", i);
    if (options_.stop == MixStop::drop && stage.base[i] >= limit_of(i)) {
      wanted[i] = 0;
    }
  }
  const bool any = std::any_of(wanted.begin(), wanted.end(), [](double p) { return p > 0; });
  stage.shares = any ? shares_of(wanted) : std::vector<std::uint64_t>(sizes_.size(), 0);
}

std::int64_t BlockMixture::limit_of(std::size_t source) const { return sizes_[source] * std::max<std::int64_t>(1, options_.epochs); }

BlockMixture::Counts BlockMixture::block_counts(const Stage& stage, std::int64_t block, const Counts& before) const {
  const std::size_t n = sizes_.size();
  const auto end = static_cast<Wide>(block + 1) * static_cast<Wide>(options_.block);
  Counts counts(n, 0);
  struct Open {
    std::int64_t deadline;  // the block by whose end the next sequence must have been drawn
    std::size_t source;
  };
  std::vector<Open> open;
  for (std::size_t i = 0; i < n; ++i) {
    if (stage.shares[i] == 0) {
      continue;
    }
    const std::int64_t drawn = before[i] - stage.base[i];
    const Wide due = stage.shares[i] * end;
    counts[i] = std::max<std::int64_t>(0, down(due, kOne) - drawn);
    if (const std::int64_t next = drawn + counts[i]; next < up(due, kOne)) {
      open.push_back({up(static_cast<Wide>(next + 1) * kOne, static_cast<Wide>(stage.shares[i]) * static_cast<Wide>(options_.block)), i});
    }
  }
  std::stable_sort(open.begin(), open.end(), [](const Open& a, const Open& b) { return a.deadline < b.deadline; });
  const auto room = static_cast<std::size_t>(std::max<std::int64_t>(0, options_.block - sum(counts)));
  for (std::size_t k = 0; k < std::min(room, open.size()); ++k) {
    ++counts[open[k].source];
  }
  if (options_.stop == MixStop::drop) {
    limit(stage, before, counts);
  }
  return counts;
}

/// No source beyond its limit; what one lacks the others give, by their shares, as far as they can.
void BlockMixture::limit(const Stage& stage, const Counts& before, Counts& counts) const {
  std::vector<double> left(sizes_.size(), 0);
  for (std::int64_t missing = -1; missing != 0;) {
    missing = 0;
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      const std::int64_t most = limit_of(i) - before[i];
      missing += std::max<std::int64_t>(0, counts[i] - most);
      counts[i] = std::min(counts[i], most);
      left[i] = counts[i] < most ? static_cast<double>(stage.shares[i]) : 0;
    }
    if (missing == 0 || std::none_of(left.begin(), left.end(), [](double share) { return share > 0; })) {
      return;  // without any: the last block, and shorter
    }
    const std::vector<std::uint64_t> shares = shares_of(left);
    std::int64_t given = 0;
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      const std::int64_t more = down(static_cast<Wide>(shares[i]) * static_cast<Wide>(missing), kOne);
      counts[i] += more;
      given += more;
    }
    counts[static_cast<std::size_t>(std::max_element(shares.begin(), shares.end()) - shares.begin())] += missing - given;
  }
}

void BlockMixture::find_end() {
  size_ = kEndless;
  if (options_.stop == MixStop::first) {
    find_first_end();
  } else if (options_.stop == MixStop::drop) {
    find_drops();
  } else if (options_.epochs > 0) {
    size_ = sum(sizes_) * options_.epochs;
  }
}

/// A stage for each source that is used up from the last one on, and the end.
void BlockMixture::find_drops() {
  while (std::any_of(stages_.back().shares.begin(), stages_.back().shares.end(), [](std::uint64_t share) { return share > 0; })) {
    Stage next;
    next.base = stages_.back().base;
    next.first = stages_.back().first;
    for (std::int64_t block = 0;; ++block) {
      const Counts counts = block_counts(stages_.back(), block, next.base);
      next.first += sum(counts);
      bool used_up = false;
      std::vector<double> shares;
      for (std::size_t i = 0; i < sizes_.size(); ++i) {
        next.base[i] += counts[i];
        used_up = used_up || (stages_.back().shares[i] > 0 && next.base[i] >= limit_of(i));
        shares.push_back(static_cast<double>(stages_.back().shares[i]));
      }
      if (used_up) {
        set_shares(next, shares);
        break;
      }
    }
    stages_.push_back(std::move(next));
  }
  size_ = stages_.back().first;
}

/// The first sequence that would be the second time its source's first one.
void BlockMixture::find_first_end() {
  const Stage& stage = stages_.back();
  Counts before = stage.base;
  for (std::int64_t block = 0;; ++block) {
    const Counts counts = block_counts(stage, block, before);
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      if (before[i] + counts[i] > limit_of(i)) {
        Cursor laid;
        lay_out(stage, block, before, laid);
        const auto over = std::find_if(laid.draws.begin(), laid.draws.end(),
                                       [&](const Draw& draw) { return draw.ordinal >= limit_of(static_cast<std::size_t>(draw.source)); });
        size_ = stage.first + block * options_.block + (over - laid.draws.begin());
        return;
      }
    }
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      before[i] += counts[i];
    }
  }
}

void BlockMixture::lay_out(const Stage& stage, std::int64_t block, const Counts& before, Cursor& out) const {
  out.before = before;
  out.in_block = block_counts(stage, block, before);
  out.block = block;
  const std::int64_t length = sum(out.in_block);
  out.draws.resize(static_cast<std::size_t>(length));
  if (length == 0) {
    return;
  }
  Counts ends = out.in_block;
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  Counts next = before;
  const std::int64_t begin = stage.first + block * options_.block;
  const Feistel places(length, mix_keys(static_cast<std::uint64_t>(options_.seed), static_cast<std::uint64_t>(begin)));
  for (std::int64_t place = 0; place < length; ++place) {
    const auto source = std::upper_bound(ends.begin(), ends.end(), places.at(place)) - ends.begin();
    out.draws[static_cast<std::size_t>(place)] = {source, next[static_cast<std::size_t>(source)]++};
  }
}

/// Brings the cursor to the block of sequence `n`, onwards from where it is if it can.
void BlockMixture::seek(std::int64_t n) {
  std::size_t stage = stages_.size() - 1;
  while (stages_[stage].first > n) {
    --stage;
  }
  const std::int64_t block = (n - stages_[stage].first) / options_.block;
  if (cursor_.stage == stage && cursor_.block == block) {
    return;
  }
  Counts before = stages_[stage].base;
  std::int64_t at = 0;
  if (cursor_.stage == stage && cursor_.block >= 0 && cursor_.block < block) {
    before = cursor_.before;
    at = cursor_.block;
  }
  for (; at < block; ++at) {
    const Counts counts = block_counts(stages_[stage], at, before);
    for (std::size_t i = 0; i < counts.size(); ++i) {
      before[i] += counts[i];
    }
  }
  cursor_.stage = stage;
  lay_out(stages_[stage], block, before, cursor_);
}

void BlockMixture::read(std::int64_t first, std::int64_t stride, std::span<Draw> out) {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::int64_t n = first + static_cast<std::int64_t>(i) * stride;
    KF_CHECK(n >= 0 && n < size_, Code::data, "sequence {} of the mixture asked for, it ends after {}", n, size_);
    seek(n);
    out[i] = cursor_.draws[static_cast<std::size_t>(n - stages_[cursor_.stage].first - cursor_.block * options_.block)];
  }
}

BlockMixture::Counts BlockMixture::counts_at(std::int64_t n) {
  if (n == 0) {
    return Counts(sizes_.size(), 0);
  }
  seek(n - 1);
  Counts counts = cursor_.before;
  const std::int64_t inside = n - stages_[cursor_.stage].first - cursor_.block * options_.block;
  for (std::int64_t place = 0; place < inside; ++place) {
    ++counts[static_cast<std::size_t>(cursor_.draws[static_cast<std::size_t>(place)].source)];
  }
  return counts;
}

std::vector<std::int64_t> BlockMixture::counts(std::int64_t n) {
  const std::lock_guard lock(mutex_);
  KF_CHECK(n >= 0 && n <= size_, Code::data, "the first {} sequences of the mixture asked for, it ends after {}", n, size_);
  return counts_at(n);
}

void BlockMixture::change(std::int64_t first, const std::vector<double>& probabilities) {
  const std::lock_guard lock(mutex_);
  KF_CHECK(first >= last_change_, Code::data, "the mixture is set up to sequence {} already; a change at {} comes too late", last_change_,
           first);
  last_change_ = first;
  if (first >= size_) {
    return;  // nothing is read from there on
  }
  Stage stage;
  stage.first = first;
  stage.base = counts_at(first);
  set_shares(stage, probabilities);
  while (!stages_.empty() && stages_.back().first >= stage.first) {
    stages_.pop_back();
  }
  stages_.push_back(std::move(stage));
  cursor_ = {};
  find_end();
}

}  // namespace kf
