#pragma once
// The most floating-point operations a second that a device does in dense matrix products: the denominator of MFU.

#include <c10/core/ScalarType.h>

#include <string>
#include <string_view>

namespace kf {

struct Peak {
  double flops = 0;
  std::string source;  // "table", "measured, fp32", ...: for the log
};

/// Of an NVIDIA GPU by its name, bf16 without sparsity, from the vendor's data sheets. A name that is not in the table is guessed from its
/// compute capability, and the log says so.
Peak cuda_peak(std::string_view device_name, int compute_capability_major);

/// Of this machine's CPUs with the threads that LibTorch uses now: matrix products are timed, which takes less than 0.1 s. A share of it
/// can come out slightly above 1 when the machine was busy meanwhile. In bf16 the better of bf16 and fp32 counts: without bf16 instructions
/// fp32 is what the machine can do.
Peak measure_cpu_peak(at::ScalarType compute);

}  // namespace kf
