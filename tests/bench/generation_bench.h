#pragma once

namespace kf {
struct Registries;
}

namespace kf::bench {

/// Text with the cache against text without, and prompts together against one after the other.
void bench_generation(const Registries& registries);

}  // namespace kf::bench
