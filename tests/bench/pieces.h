#pragma once
// Every fused piece against the plain operators that it stands for.

namespace kf {

struct Registries;

namespace bench {

/// Losses, attention, norm, gate, rotation, experts, AdamW, and whole training steps with and without train.compile_model.
void bench_pieces(const Registries& registries);

}  // namespace bench
}  // namespace kf
