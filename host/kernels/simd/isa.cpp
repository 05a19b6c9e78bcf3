#include "kernels/simd/isa.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace kf::simd {
namespace {

std::string_view limit() {
  const char* const set = std::getenv("ATEN_CPU_CAPABILITY");
  return set != nullptr ? set : "";
}

Isa of_processor() {
#ifdef __x86_64__
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    return Isa::plain;
  }
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512dq") ||
      !__builtin_cpu_supports("avx512vl")) {
    return Isa::avx2;
  }
  return __builtin_cpu_supports("avx512bf16") ? Isa::avx512_bf16 : Isa::avx512;
#else
  return Isa::plain;
#endif
}

Isa best() {
  const Isa most = of_processor();
  return limit() == "default" ? Isa::plain : limit() == "avx2" ? std::min(most, Isa::avx2) : most;
}

}  // namespace

Isa isa() {
  static const Isa chosen = best();
  return chosen;
}

bool processor_has_what_is_asked() {
#ifdef __x86_64__
  return limit() == "avx512" ? of_processor() >= Isa::avx512 : limit() != "avx2" || of_processor() >= Isa::avx2;
#else
  return true;
#endif
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
