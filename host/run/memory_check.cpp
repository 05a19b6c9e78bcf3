#include "run/memory_check.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>

#include "core/error.h"
#include "core/fs.h"
#include "core/log.h"
#include "model/transformer/build.h"

namespace kf {
namespace {

constexpr double kCertain = 0.8;  // share of the activations that an estimate is sure of

bool is_uncertain(const std::string& part) { return part == "activations" || part == "logits"; }

/// The least that the estimate can mean.
double at_least(const MemoryEstimate& estimate) {
  double out = 0;
  for (const auto& [name, bytes] : estimate.parts) {
    out += is_uncertain(name) ? kCertain * bytes : bytes;
  }
  return out;
}

std::string parts_text(const MemoryEstimate& estimate) {
  std::vector<std::string> words;
  for (const auto& [name, bytes] : estimate.parts) {
    words.push_back(format("{} {}", name, human_bytes(bytes)));
  }
  return join(words, ", ") + (estimate.complete ? "" : ", and what parts in Lua hold");
}

std::string savers_text(const Savers& savers) {
  std::vector<std::string> words;
  for (const auto& [change, total] : savers) {
    words.push_back(format("{} (then {})", change, human_bytes(total)));
  }
  return words.empty() ? "" : "; what would help: " + join(words, ", ");
}

bool native_only(const config::Config& config, const Registries& registries) {
  try {
    build_model(config, registries);
    registries.optimizer.get(config.optimizer.name);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

FreeMemory room_on(at::Device device) {
  if (!device.is_cuda()) {
    return free_memory();
  }
  try {
    const auto [free, total] = at::getDeviceAllocator(device.type())->getMemoryInfo(device.index());
    return {static_cast<double>(free), "the free memory of the GPU"};
  } catch (const c10::Error&) {  // an allocator that does not tell: nothing is claimed
    return {};
  }
}

std::string memory_text(const MemoryEstimate& estimate, const FreeMemory& room) {
  const std::string free = room.limit.empty() ? "" : format(" of {} free", human_bytes(room.bytes));
  return format("about {}{}: {}", human_bytes(estimate.total()), free, parts_text(estimate));
}

void check_memory(const config::RunConfig& run, const std::string& what, const MemoryEstimate& estimate, const FreeMemory& room,
                  const Savers& savers) {
  if (run.memory_check == "off" || room.limit.empty() || estimate.total() <= room.bytes) {
    return;
  }
  const std::string said = format("{} needs about {} of memory in {}, and {} is {}: {}{}", what, human_bytes(estimate.total()),
                                  estimate.moment, room.limit, human_bytes(room.bytes), parts_text(estimate), savers_text(savers));
  KF_CHECK(run.memory_check != "refuse" || at_least(estimate) <= room.bytes, Code::config,
           "{}. This is an estimate: --run.memory_check=warn starts anyway", said);
  log::warn("{}", said);
}

void check_loading(const config::Config& config, const ParameterList& parameters, at::Device device, const fs::path& folder) {
  MemoryEstimate estimate = inference_memory(config, parameters, 1, 1);
  double bytes = 0;  // of the files, whose tensors are all there while they are copied
  for (const fs::path& file : glob(folder, "*.safetensors")) {
    std::error_code ignored;
    const std::uintmax_t size = fs::file_size(file, ignored);
    bytes += file.filename() == "optimizer.safetensors" || ignored ? 0 : static_cast<double>(size);
  }
  estimate.parts.emplace_back("the file as it is read", device.is_cpu() ? bytes : 0);
  std::erase_if(estimate.parts, [](const auto& part) { return part.second < 1; });
  estimate.moment = "loading";
  check_memory(config.run, format("the model of {}", folder), estimate, room_on(device));
}

void check_generation(const config::Config& config, const ParameterList& parameters, at::Device device, double rows, double positions) {
  MemoryEstimate estimate = inference_memory(config, parameters, rows, positions);
  std::erase_if(estimate.parts, [](const auto& part) { return part.first == "weights"; });  // they are there already
  check_memory(config.run, format("generation of {} texts with {} positions", fixed(rows, 0), fixed(positions, 0)), estimate,
               room_on(device),
               rows > 1 ? Savers{{"--batch-size 1", inference_memory(config, parameters, 1, positions).total() -
                                                        inference_memory(config, parameters, 1, positions).of("weights")}}
                        : Savers{});
}

std::vector<std::string> memory_report(const config::Loaded& loaded, const Registries& registries, std::int64_t world) {
  const config::Config& config = loaded.config;
  if (!native_only(config, registries)) {
    return {"memory: the model has parts in Lua; its size is known when it is built (--dry-run)"};
  }
  const ParameterList parameters = build_model(config, registries)->parameters();
  const FreeMemory room = free_memory();
  const MemoryEstimate estimate = training_memory(config, parameters, world);
  if (world > 1) {
    return {format("memory: about {} on the fullest of {} ranks: {}; `kf-host plan` says more", human_bytes(estimate.total()), world,
                   parts_text(estimate))};
  }
  std::vector<std::string> out{"memory: " + memory_text(estimate, room)};
  if (estimate.total() > room.bytes && !room.limit.empty()) {
    out.push_back(format("warning: that is more than {} here ({}){}", room.limit, human_bytes(room.bytes),
                         savers_text(memory_savers(config, parameters))));
  }
  return out;
}

}  // namespace kf
