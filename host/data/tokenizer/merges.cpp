#include "data/tokenizer/merges.h"

#include <algorithm>

namespace kf {
namespace {

/// Up to here looking at all pairs for the best is quicker than a heap.
constexpr std::size_t kShort = 64;

struct Later {
  bool operator()(const Merges::Scratch::Candidate& a, const Merges::Scratch::Candidate& b) const { return a.order > b.order; }
};

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

void Merges::push(std::uint32_t left, std::uint32_t right, Scratch& scratch) const {
  const std::uint32_t left_id = scratch.nodes[left].id;
  const std::uint32_t right_id = scratch.nodes[right].id;
  if (const Merge* found = find(left_id, right_id)) {
    scratch.heap.push_back({std::uint64_t{found->rank} << 32 | left, right, left_id, right_id});
    std::push_heap(scratch.heap.begin(), scratch.heap.end(), Later());
  }
}

void Merges::apply_long(std::vector<std::uint32_t>& ids, Scratch& scratch) const {
  auto& nodes = scratch.nodes;
  const auto count = static_cast<std::uint32_t>(ids.size());
  nodes.resize(ids.size());
  scratch.heap.clear();
  for (std::uint32_t i = 0; i < count; ++i) {
    nodes[i] = {ids[i], 0, 0, i == 0 ? kNone : i - 1, i + 1 == count ? kNone : i + 1};
  }
  for (std::uint32_t i = 0; i + 1 < count; ++i) {
    if (const Merge* found = find(ids[i], ids[i + 1])) {
      scratch.heap.push_back({std::uint64_t{found->rank} << 32 | i, i + 1, ids[i], ids[i + 1]});
    }
  }
  std::make_heap(scratch.heap.begin(), scratch.heap.end(), Later());
  while (!scratch.heap.empty()) {
    const Scratch::Candidate top = scratch.heap.front();
    std::pop_heap(scratch.heap.begin(), scratch.heap.end(), Later());
    scratch.heap.pop_back();
    const auto left = static_cast<std::uint32_t>(top.order);
    if (nodes[left].id != top.left_id || nodes[left].next != top.right || nodes[top.right].id != top.right_id) {
      continue;
    }
    nodes[left].id = find(top.left_id, top.right_id)->result;
    nodes[left].next = nodes[top.right].next;
    nodes[top.right].id = kNone;  // gone
    if (nodes[left].next != kNone) {
      nodes[nodes[left].next].previous = left;
      push(left, nodes[left].next, scratch);
    }
    if (nodes[left].previous != kNone) {
      push(nodes[left].previous, left, scratch);
    }
  }
  ids.clear();
  for (std::uint32_t i = 0; i != kNone; i = nodes[i].next) {
    ids.push_back(nodes[i].id);
  }
}

}  // namespace kf
