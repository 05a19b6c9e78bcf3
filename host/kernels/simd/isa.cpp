#include "kernels/simd/isa.h"

#include <cstdlib>
#include <string_view>

namespace kf::simd {
namespace {

Isa best() {
#ifdef __x86_64__
  __builtin_cpu_init();
  const char* const set = std::getenv("ATEN_CPU_CAPABILITY");
  const std::string_view limit = set != nullptr ? set : "";
  if (limit == "default" || !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    return Isa::plain;
  }
  if (limit == "avx2" || !__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512dq") ||
      !__builtin_cpu_supports("avx512vl")) {
    return Isa::avx2;
  }
  return __builtin_cpu_supports("avx512bf16") ? Isa::avx512_bf16 : Isa::avx512;
#else
  return Isa::plain;
#endif
}

}  // namespace

Isa isa() {
  static const Isa chosen = best();
  return chosen;
}

const char* name_of(Isa isa) {
  switch (isa) {
    case Isa::plain: return "plain";
    case Isa::avx2: return "avx2";
    case Isa::avx512: return "avx512";
    case Isa::avx512_bf16: return "avx512_bf16";
  }
  return "";
}

}  // namespace kf::simd
