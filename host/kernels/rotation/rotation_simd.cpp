#include "kernels/rotation/rotation_rows.h"
#include "kernels/simd/vector.h"

namespace kf::simd::KF_SIMD_ISA {
namespace {

/// Of one head at one position.
template <class T>
struct Head {
  const T* x;
  T* out;
};

template <class T>
KF_SIMD_INLINE void turn_halves(const Head<T>& head, const float* cos, const float* sin, std::int64_t turned, V sign) {
  const std::int64_t half = turned / 2;
  each_run(half, [&](std::int64_t j, auto lanes) {
    const V a = lanes.load(head.x + j), b = lanes.load(head.x + half + j);
    const V c = lanes.load(cos + j), s = lanes.load(sin + j) * sign;
    lanes.store(head.out + j, a * c - b * s);
    lanes.store(head.out + half + j, fma(b, c, a * s));
  });
}

template <class T>
KF_SIMD_INLINE void turn_neighbours(const Head<T>& head, const float* cos, const float* sin, std::int64_t turned, V signs) {
  const auto turn = [&](std::int64_t j, std::int64_t pairs, auto lanes) {
    const V x = lanes.load(head.x + j);
    const V s = load_twice(sin + j / 2, pairs) * signs;
    lanes.store(head.out + j, fma(x, load_twice(cos + j / 2, pairs), swapped(x) * s));
  };
  std::int64_t j = 0;
  for (; j + kLanes <= turned; j += kLanes) {
    turn(j, kLanes / 2, Whole());
  }
  if (j < turned) {
    turn(j, (turned - j) / 2, First{turned - j});
  }
}

/// 1, or -1 for the first of every pair of neighbours; the other way where it turns back.
KF_SIMD_INLINE V signs_of(const HeadRotation& of) {
  V signs = splat(of.back ? -1.0F : 1.0F);
  for (int i = 0; of.interleaved && i < kLanes; i += 2) {
    signs[i] = -signs[i];
  }
  return signs;
}

template <class T>
void rotate(const HeadRotation& of, std::int64_t first, std::int64_t end) {
  const V signs = signs_of(of);
  for (std::int64_t i = first; i < end; ++i) {
    const std::int64_t batch = i / of.positions, t = i % of.positions;
    const std::int64_t angles = batch * of.angle_batch + t * of.angle_position;
    const T* const from = static_cast<const T*>(of.x) + batch * of.from.batch + t * of.from.position;
    T* const to = static_cast<T*>(of.out) + batch * of.to.batch + t * of.to.position;
    for (std::int64_t h = 0; h < of.heads; ++h) {
      const Head<T> head{from + h * of.from.head, to + h * of.to.head};
      if (of.interleaved) {
        turn_neighbours(head, of.cos + angles, of.sin + angles, of.turned, signs);
      } else {
        turn_halves(head, of.cos + angles, of.sin + angles, of.turned, signs);
      }
      if (of.turned < of.width) {
        std::memcpy(head.out + of.turned, head.x + of.turned, static_cast<std::size_t>(of.width - of.turned) * sizeof(T));
      }
    }
  }
}

}  // namespace

void rotate_heads(const HeadRotation& of, std::int64_t first, std::int64_t end) {
  of.bf16 ? rotate<Bf16>(of, first, end) : rotate<float>(of, first, end);
}

}  // namespace kf::simd::KF_SIMD_ISA
