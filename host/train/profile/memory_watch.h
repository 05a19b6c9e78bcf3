#pragma once
// Which tensors lived when, and for whom: the memory of a step by kind and by layer.

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>

#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/trace.h"
#include "model/model.h"
#include "optim/optimizer.h"

namespace kf {

/// What memory is held for. activations: made in forward, and still there when it was over. temporary: all else that a step makes.
enum class MemoryKind : std::uint8_t { weights, optimizer, gradients, activations, temporary };
inline constexpr const char* kMemoryKinds[] = {"weights", "optimizer", "gradients", "activations", "temporary"};
inline constexpr std::size_t kMemoryKindCount = std::size(kMemoryKinds);
using MemoryByKind = std::array<std::int64_t, kMemoryKindCount>;  // bytes

/// The memory of a step.
struct StepMemory {
  struct Moment {
    std::int64_t time = 0;  // as TraceRecorder::now
    MemoryByKind held{};
  };
  std::vector<Moment> course;                  // in order of time; where it moved enough to be seen
  MemoryByKind start{}, peak{}, end{};         // the peak is the moment with the largest sum
  std::uint32_t peak_place = 0;                // where the allocation of the peak was made
  std::map<std::string, MemoryByKind> layers;  // at the peak: "layers.3", "token_embedding"; "" for what is of no layer
};

/// The layer of a weight or of a place by its name: "layers.3" of "layers.3.attention.q_proj.weight".
std::string layer_named_in(const std::string& name);

std::int64_t sum_of(const MemoryByKind& kinds);

/// Is told of every allocation on `device` by the thread that trains (as c10's PROFILER_STATE, which the caller installs). What is there
/// when a step begins is known by whose it is: weights, gradients, state of the optimizer. Memory of others from before is not counted.
class MemoryWatch final : public c10::MemoryReportingInfoBase {
 public:
  MemoryWatch(Model& model, const Optimizer& optimizer, at::Device device) : model_(model), optimizer_(optimizer), device_(device) {}

  void begin_step();
  /// `places`: those of this thread.
  StepMemory end_step(const std::vector<TracePlace>& places);
  /// Backward is over: gradients are where they stay until the update.
  void backward_ended() { note_gradients(); }

  void reportMemoryUsage(void* address, std::int64_t bytes, std::size_t allocated, std::size_t reserved, c10::Device device) override;
  bool memoryProfilingEnabled() const override { return true; }  // between steps, too: torch then knows the sizes of what is freed later

 private:
  static constexpr std::uint32_t kLives = ~std::uint32_t{0};
  struct Block {
    std::int64_t bytes = 0;
    MemoryKind kind = MemoryKind::temporary;
    bool owned = false;  // `kind` and `layer` are known by whose it is
    std::string layer = {};
    std::uint32_t made = 0;       // the place
    std::uint32_t gone = kLives;  // likewise
  };
  struct Change {
    std::int64_t time;
    std::uint32_t block;
    bool made;
  };
  void add_owned(const at::Tensor& tensor, MemoryKind kind, const std::string& layer, bool at_start);
  void note_owned(bool at_start);
  void note_gradients(bool at_start = false);
  void name_blocks(const std::vector<TracePlace>& places);

  Model& model_;
  const Optimizer& optimizer_;
  at::Device device_;
  bool on_ = false;
  std::vector<Block> blocks_;
  std::size_t before_ = 0;  // blocks that were there when the step began
  std::vector<Change> changes_;
  std::unordered_map<const void*, std::uint32_t> living_;
};

}  // namespace kf
