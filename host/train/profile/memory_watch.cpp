#include "train/profile/memory_watch.h"

#include <algorithm>
#include <numeric>

namespace kf {
namespace {

constexpr std::int64_t kSeen = 200;  // parts of the peak that the course tells apart

bool is_number(const std::string& word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::int64_t sum_of(const MemoryByKind& kinds) { return std::accumulate(kinds.begin(), kinds.end(), std::int64_t{0}); }

std::string layer_named_in(const std::string& name) {
  std::string whole = name.substr(0, name.find(" > "));
  const std::size_t dot = whole.find('.');
  if (dot == std::string::npos) {
    return whole;
  }
  const std::size_t second = whole.find('.', dot + 1);
  return is_number(whole.substr(dot + 1, second == std::string::npos ? second : second - dot - 1)) ? whole.substr(0, second)
                                                                                                   : whole.substr(0, dot);
}

/// A storage is counted once, for who names it first.
void MemoryWatch::add_owned(const at::Tensor& tensor, MemoryKind kind, const std::string& layer, bool at_start) {
  if (!tensor.defined() || !tensor.has_storage() || tensor.device().type() != device_.type() || tensor.storage().nbytes() == 0) {
    return;
  }
  const void* const address = tensor.storage().data();
  const auto known = living_.find(address);
  if (known != living_.end()) {
    Block& block = blocks_[known->second];
    if (!block.owned) {
      block.owned = true;
      block.kind = kind;
      block.layer = layer;
    }
  } else if (at_start) {
    living_[address] = static_cast<std::uint32_t>(blocks_.size());
    blocks_.push_back({static_cast<std::int64_t>(tensor.storage().nbytes()), kind, true, layer});
  }
}

void MemoryWatch::note_gradients(bool at_start) {
  for (const ParameterPtr& weight : model_.parameters()) {
    for (const at::Tensor& gradient : {weight->sum, weight->part_gradient, weight->value.defined() ? weight->value.grad() : at::Tensor()}) {
      add_owned(gradient, MemoryKind::gradients, layer_named_in(weight->name), at_start);
    }
  }
}

void MemoryWatch::note_owned(bool at_start) {
  const ParameterList weights = model_.parameters();
  for (const ParameterPtr& weight : weights) {
    add_owned(weight->value, MemoryKind::weights, layer_named_in(weight->name), at_start);
    add_owned(weight->master, MemoryKind::weights, layer_named_in(weight->name), at_start);
  }
  note_gradients(at_start);
  for (const auto& [name, tensor] : optimizer_.state().tensors) {  // "exp_avg.layers.0.attention.q_proj.weight"
    const auto of = std::find_if(weights.begin(), weights.end(), [&name = name](const ParameterPtr& weight) {
      return name.size() > weight->name.size() && name.ends_with(weight->name) && name[name.size() - weight->name.size() - 1] == '.';
    });
    add_owned(tensor, MemoryKind::optimizer, of != weights.end() ? layer_named_in((*of)->name) : "", at_start);
  }
}

void MemoryWatch::begin_step() {
  blocks_.clear();
  changes_.clear();
  living_.clear();
  note_owned(/*at_start=*/true);
  before_ = blocks_.size();
  on_ = true;
}

void MemoryWatch::reportMemoryUsage(void* address, std::int64_t bytes, std::size_t /*allocated*/, std::size_t /*reserved*/,
                                    c10::Device device) {
  if (!on_ || device.type() != device_.type() || bytes == 0) {
    return;
  }
  if (bytes > 0) {
    const auto number = static_cast<std::uint32_t>(blocks_.size());
    blocks_.push_back({bytes, MemoryKind::temporary, false, {}, TraceRecorder::place()});
    living_[address] = number;
    changes_.push_back({TraceRecorder::now(), number, true});
    return;
  }
  const auto found = living_.find(address);
  if (found != living_.end()) {  // else it is from before, and of nobody who is asked
    blocks_[found->second].gone = TraceRecorder::place();
    changes_.push_back({TraceRecorder::now(), found->second, false});
    living_.erase(found);
  }
}

/// What a block was for shows when it is over.
void MemoryWatch::name_blocks(const std::vector<TracePlace>& places) {
  for (std::size_t i = before_; i < blocks_.size(); ++i) {
    Block& block = blocks_[i];
    if (block.owned) {
      continue;
    }
    const TracePlace& made = places[block.made];
    const bool kept = block.gone == kLives || places[block.gone].phase != "forward";
    block.kind = made.phase == "forward" && kept ? MemoryKind::activations : MemoryKind::temporary;
    block.layer = made.label.empty() ? "" : layer_named_in(made.label);
  }
}

StepMemory MemoryWatch::end_step(const std::vector<TracePlace>& places) {
  on_ = false;
  note_owned(/*at_start=*/false);  // what the update has made stays
  name_blocks(places);
  StepMemory out;
  MemoryByKind held{};
  const auto add = [&](const Block& block, std::int64_t sign) { held[static_cast<std::size_t>(block.kind)] += sign * block.bytes; };
  for (std::size_t i = 0; i < before_; ++i) {
    add(blocks_[i], 1);
  }
  out.start = out.peak = held;
  std::size_t peak_at = 0;  // changes before it
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    const Change& change = changes_[i];
    add(blocks_[change.block], change.made ? 1 : -1);
    if (sum_of(held) > sum_of(out.peak)) {
      out.peak = held;
      peak_at = i + 1;
      out.peak_place = blocks_[change.block].made;
    }
  }
  out.end = held;
  // Once more, now that the peak is known: by layer, and the course.
  std::vector<bool> lives(blocks_.size(), false);
  std::fill(lives.begin(), lives.begin() + static_cast<std::ptrdiff_t>(before_), true);
  for (std::size_t i = 0; i < peak_at; ++i) {
    lives[changes_[i].block] = changes_[i].made;
  }
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (lives[i]) {
      out.layers[blocks_[i].layer][static_cast<std::size_t>(blocks_[i].kind)] += blocks_[i].bytes;
    }
  }
  held = out.start;
  std::int64_t shown = -1;
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    add(blocks_[changes_[i].block], changes_[i].made ? 1 : -1);
    const std::int64_t sum = sum_of(held);
    if (shown < 0 || std::abs(sum - shown) * kSeen >= sum_of(out.peak) || i + 1 == peak_at || i + 1 == changes_.size()) {
      out.course.push_back({changes_[i].time, held});
      shown = sum;
    }
  }
  return out;
}

}  // namespace kf
