#pragma once
// Every fused piece against the plain operators that it stands for.

namespace kf {

struct Registries;

namespace bench {

class Goals;

/// Losses, attention, norm, gate, rotation, experts, AdamW, and whole training steps with and without train.compile_model.
void bench_pieces(const Registries& registries, Goals& goals);

}  // namespace bench
}  // namespace kf
