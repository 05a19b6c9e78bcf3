#pragma once
// Which vector instructions this process computes with. Files named *_simd.cpp are compiled once for each set (cmake/folder.cmake), in a
// namespace of its name, and the set is chosen once, by the processor: one program serves all of them.

namespace kf::simd {

/// avx2 has FMA, too; avx512 is F, BW, DQ and VL; avx512_bf16 has bf16's own instructions beside them. On other processors than x86-64,
/// `plain` is all there is: the compiler's own vectors (NEON).
enum class Isa { plain, avx2, avx512, avx512_bf16 };

/// The best one that this processor has; ATEN_CPU_CAPABILITY ("default", "avx2", "avx512") sets a limit, as it does for LibTorch.
Isa isa();
/// Not where ATEN_CPU_CAPABILITY names instructions that this processor lacks: LibTorch believes it, and the first of them ends the
/// process.
bool processor_has_what_is_asked();
const char* name_of(Isa isa);

template <class Function>
Function choose(Function plain, Function avx2, Function avx512, Function avx512_bf16) {
  const Function all[]{plain, avx2, avx512, avx512_bf16};
  return all[static_cast<int>(isa())];
}

}  // namespace kf::simd

// Of a function that a *_simd.cpp file defines in its namespace: its declarations, and the one for this processor.
#ifdef __x86_64__
#define KF_SIMD_DECLARE(...)        \
  namespace kf::simd::plain {       \
  __VA_ARGS__;                      \
  }                                 \
  namespace kf::simd::avx2 {        \
  __VA_ARGS__;                      \
  }                                 \
  namespace kf::simd::avx512 {      \
  __VA_ARGS__;                      \
  }                                 \
  namespace kf::simd::avx512_bf16 { \
  __VA_ARGS__;                      \
  }
#define KF_SIMD_PICK(function)                                                                                  \
  (::kf::simd::choose(&::kf::simd::plain::function, &::kf::simd::avx2::function, &::kf::simd::avx512::function, \
                      &::kf::simd::avx512_bf16::function))
#else
#define KF_SIMD_DECLARE(...)  \
  namespace kf::simd::plain { \
  __VA_ARGS__;                \
  }
#define KF_SIMD_PICK(function) (&::kf::simd::plain::function)
#endif
