#include "data/tokenizer/merges.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace kf {
namespace {

/// Up to here looking at all pairs for the best is quicker than lists by rank.
constexpr std::size_t kShort = 64;

}  // namespace

void Merges::apply(std::vector<std::uint32_t>& ids, Scratch& scratch) const {
  if (ids.size() < 2) {
    return;
  }
  ids.size() <= kShort ? apply_short(ids, scratch) : apply_long(ids, scratch);
}

void Merges::apply_short(std::vector<std::uint32_t>& ids, Scratch& scratch) const {
  auto& nodes = scratch.nodes;
  nodes.resize(ids.size());
  const auto look = [&](std::size_t at) {
    const Merge* found = at + 1 < ids.size() ? find(ids[at], ids[at + 1]) : nullptr;
    nodes[at].rank = found != nullptr ? found->rank : kNone;
    nodes[at].result = found != nullptr ? found->result : 0;
  };
  for (std::size_t i = 0; i < ids.size(); ++i) {
    look(i);
  }
  for (;;) {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < ids.size(); ++i) {
      best = nodes[i].rank < nodes[best].rank ? i : best;
    }
    if (nodes[best].rank == kNone) {
      return;
    }
    ids[best] = nodes[best].result;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    look(best);
    if (best > 0) {
      look(best - 1);
    }
    if (ids.size() < 2) {
      return;
    }
  }
}

std::uint32_t Merges::push(std::uint32_t left, std::uint32_t right, Scratch& scratch) const {
  const std::uint32_t left_id = scratch.nodes[left].id;
  const std::uint32_t right_id = scratch.nodes[right].id;
  const Merge* found = find(left_id, right_id);
  if (found == nullptr) {
    return kNone;
  }
  std::uint32_t& bucket = scratch.bucket_of[found->rank];
  if (bucket == kNone) {
    if (scratch.free_buckets.empty()) {
      scratch.free_buckets.push_back(static_cast<std::uint32_t>(scratch.buckets.size()));
      scratch.buckets.emplace_back();
    }
    bucket = scratch.free_buckets.back();
    scratch.free_buckets.pop_back();
    scratch.ranks.push_back(found->rank);
    std::push_heap(scratch.ranks.begin(), scratch.ranks.end(), std::greater<>());
  }
  scratch.buckets[bucket].push_back({left, right, left_id, right_id});
  return found->rank;
}

void Merges::merge_rank(std::uint32_t rank, Scratch& scratch) const {
  auto& nodes = scratch.nodes;
  const std::uint32_t bucket = std::exchange(scratch.bucket_of[rank], kNone);
  std::vector<Scratch::Candidate> pairs = std::move(scratch.buckets[bucket]);
  const auto by_place = [](const Scratch::Candidate& a, const Scratch::Candidate& b) { return a.left < b.left; };
  if (!std::is_sorted(pairs.begin(), pairs.end(), by_place)) {
    std::sort(pairs.begin(), pairs.end(), by_place);
  }
  std::size_t done = 0;
  bool in_order = true;
  while (in_order && done < pairs.size()) {
    const Scratch::Candidate pair = pairs[done++];
    if (nodes[pair.left].id != pair.left_id || nodes[pair.left].next != pair.right || nodes[pair.right].id != pair.right_id) {
      continue;
    }
    nodes[pair.left].id = find(pair.left_id, pair.right_id)->result;
    nodes[pair.left].next = nodes[pair.right].next;
    nodes[pair.right].id = kNone;  // gone
    const std::uint32_t next = nodes[pair.left].next;
    const std::uint32_t previous = nodes[pair.left].previous;
    if (next != kNone) {
      nodes[next].previous = pair.left;
      in_order = push(pair.left, next, scratch) > rank;
    }
    if (previous != kNone) {
      in_order = push(previous, pair.left, scratch) > rank && in_order;
    }
  }
  if (done < pairs.size()) {  // the rest waits in the rank's list
    for (; done < pairs.size(); ++done) {
      if (nodes[pairs[done].left].id == pairs[done].left_id && nodes[pairs[done].left].next == pairs[done].right) {
        push(pairs[done].left, pairs[done].right, scratch);
      }
    }
  }
  pairs.clear();
  scratch.buckets[bucket] = std::move(pairs);
  scratch.free_buckets.push_back(bucket);
}

void Merges::apply_long(std::vector<std::uint32_t>& ids, Scratch& scratch) const {
  auto& nodes = scratch.nodes;
  const auto count = static_cast<std::uint32_t>(ids.size());
  nodes.resize(ids.size());
  scratch.bucket_of.resize(std::size_t{max_rank_} + 1, kNone);
  for (std::uint32_t i = 0; i < count; ++i) {
    nodes[i] = {ids[i], 0, 0, i == 0 ? kNone : i - 1, i + 1 == count ? kNone : i + 1};
  }
  for (std::uint32_t i = 0; i + 1 < count; ++i) {
    push(i, i + 1, scratch);
  }
  while (!scratch.ranks.empty()) {
    std::pop_heap(scratch.ranks.begin(), scratch.ranks.end(), std::greater<>());
    const std::uint32_t rank = scratch.ranks.back();
    scratch.ranks.pop_back();
    merge_rank(rank, scratch);
  }
  ids.clear();
  for (std::uint32_t i = 0; i != kNone; i = nodes[i].next) {
    ids.push_back(nodes[i].id);
  }
}

}  // namespace kf
