#pragma once
// The accelerators that a plan is made for: what their makers say, and what others have measured.

#include <cstdint>
#include <string>
#include <vector>

namespace kf::plan {

/// One accelerator and how it is tied to others. Rates a second; bandwidths in bytes a second and direction.
struct Gpu {
  std::string name;
  double fp32 = 0, tf32 = 0, bf16 = 0, fp8 = 0;  // operations of dense matrix products; tf32: train.matmul_precision = "high"
  double product_share = 0.8;                    // of the peak that large matrix products reach
  double attention_share = 0.35;                 // of the peak that fused attention reaches
  double units = 132;                            // multiprocessors: each makes a tile of a product's result at a time
  double memory = 0;                             // bytes
  double memory_bandwidth = 0;
  std::int64_t node = 8;         // accelerators of a machine
  double node_bandwidth = 0;     // of one to the others of its machine
  double network_bandwidth = 0;  // of one to those of other machines
  double node_latency = 3.4e-6;  // of a hop of a ring inside a machine, and between two: NCCL's own model (src/graph/tuning.cc)
  double network_latency = 14e-6;
};

/// "a100", "b200", "h100", "h200".
std::vector<std::string> gpu_names();

/// The accelerator of the table with this name, or that of a TOML file (docs/parallelism.md): `like` names a row of the table from which it
/// takes what it does not say. Throws Code::config for a name that is neither, and for a file with unknown keys, values that are no
/// positive numbers, or, without `like`, missing ones; all faults with their lines.
Gpu gpu_named(const std::string& name_or_file);

}  // namespace kf::plan
