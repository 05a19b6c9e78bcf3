#pragma once
// Gates of rows by vectors, for any set of instructions. Plain: files of vector instructions see it.

#include <cstdint>

#include "kernels/gate/gate_kind.h"
#include "kernels/simd/isa.h"
#include "kernels/simd/rows.h"

namespace kf::simd {

/// out = act(gate) up. Rows of `width` numbers, all of one type.
struct GateForward {
  Rows gate, up;
  Rows out;  // written
  std::int64_t width;
  GateKind kind;
  bool bf16;  // else fp32
};

/// for_gate = gradient up act'(gate), for_up = gradient act(gate): both at once, one alone where the other has no data.
struct GateBackward {
  Rows gate, up, gradient;
  Rows for_gate, for_up;  // written
  std::int64_t width;
  GateKind kind;
  bool bf16;
};

}  // namespace kf::simd

KF_SIMD_DECLARE(
    /// Of rows first .. end.
    void gate_forward(const GateForward& of, std::int64_t first, std::int64_t end);
    void gate_backward(const GateBackward& of, std::int64_t first, std::int64_t end))
