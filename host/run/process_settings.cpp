#include "run/process_settings.h"

#include "core/log.h"
#include "memory/caching_allocator.h"

namespace kf {

ProcessSettings::ProcessSettings(const config::RunConfig& run) {
  if (!cache_tensor_memory(run.caching_allocator)) {
    log::info("memory of tensors is not kept (run.caching_allocator): the address sanitizer looks for overruns");
  } else if (!run.caching_allocator) {
    log::info("memory of tensors is not kept (run.caching_allocator = false)");
  }
}

ProcessSettings::~ProcessSettings() { release_cached_memory(); }

}  // namespace kf
