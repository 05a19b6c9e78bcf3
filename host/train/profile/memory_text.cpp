#include "train/profile/memory_text.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/text.h"
#include "core/text_table.h"

namespace kf {
namespace {

constexpr std::size_t kShown = 10;

std::string bytes(std::int64_t number) { return human_bytes(static_cast<double>(number)); }

std::string by_layer(const StepMemory& memory) {
  std::vector<std::pair<std::string, MemoryByKind>> layers(memory.layers.begin(), memory.layers.end());
  std::stable_sort(layers.begin(), layers.end(), [](const auto& a, const auto& b) { return sum_of(a.second) > sum_of(b.second); });
  std::vector<std::vector<std::string>> rows{{"layer"}};
  rows[0].insert(rows[0].end(), std::begin(kMemoryKinds), std::end(kMemoryKinds));
  rows[0].emplace_back("all");
  MemoryByKind rest{};
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (i >= kShown && layers.size() > kShown + 1) {
      for (std::size_t kind = 0; kind < kMemoryKindCount; ++kind) {
        rest[kind] += layers[i].second[kind];
      }
      continue;
    }
    rows.push_back({layers[i].first.empty() ? "(of no layer)" : layers[i].first});
    for (const std::int64_t held : layers[i].second) {
      rows.back().push_back(bytes(held));
    }
    rows.back().push_back(bytes(sum_of(layers[i].second)));
  }
  if (sum_of(rest) > 0) {
    rows.push_back({format("{} more", layers.size() - kShown)});
    for (const std::int64_t held : rest) {
      rows.back().push_back(bytes(held));
    }
    rows.back().push_back(bytes(sum_of(rest)));
  }
  return text_table(rows, {1, 2, 3, 4, 5, 6});
}

}  // namespace

std::string memory_table(const StepMemory& memory, std::int64_t step, const std::string& place) {
  std::vector<std::vector<std::string>> rows{{"memory", "start", "peak", "end"}};
  for (std::size_t kind = 0; kind < kMemoryKindCount; ++kind) {
    rows.push_back({kMemoryKinds[kind], bytes(memory.start[kind]), bytes(memory.peak[kind]), bytes(memory.end[kind])});
  }
  rows.push_back({"all", bytes(sum_of(memory.start)), bytes(sum_of(memory.peak)), bytes(sum_of(memory.end))});
  return format("step {} held {} at its peak, in {}\n\n", step, bytes(sum_of(memory.peak)), place) + text_table(rows, {1, 2, 3}) + '\n' +
         by_layer(memory);
}

}  // namespace kf
