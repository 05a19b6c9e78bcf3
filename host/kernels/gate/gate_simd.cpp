#include "kernels/gate/gate_rows.h"
#include "kernels/simd/vector.h"

namespace kf::simd::KF_SIMD_ISA {
namespace {

/// An activation's value and its slope.
struct Curve {
  V value, slope;
};

/// 2^(x scale), which is at most 1; 0 where `is_zero`, as it must be below 2^-125. 2^n times a polynomial of 2^f for x scale = n + f, right
/// to 8e-8 of itself: so to 2 units in the last place, and |x scale| 2^-25 by the scale's own rounding. vector.h's exp, which takes any x,
/// takes half as many instructions again. Of NaN it is anything.
KF_SIMD_INLINE V falling_exp(V x, float scale, I is_zero) {
  const V magic = splat(12582912.0F);  // 1.5 * 2^23: the sum's low bits are the rounded number
  const V shifted = fma(x, splat(scale), magic);
  const V f = fma(rounded(x), splat(scale), magic - shifted);  // `rounded`, so that it is no product that is there already
  V p = splat(1.3390863e-3F);
  p = fma(p, f, splat(9.6760319e-3F));
  p = fma(p, f, splat(5.5503571e-2F));
  p = fma(p, f, splat(2.4022107e-1F));
  p = fma(p, f, splat(6.9314719e-1F));
  p = fma(p, f, splat(1.0F));
  return is_zero ? V{} : of_bits(bits_of(p) + (bits_of(shifted) << 23));
}

constexpr float kPerLn2 = 1.44269504F;

/// x s(w) for the logistic s, and its slope by that of w: x' s + x s (1 - s) w'. By e^-|w|, so that small s and 1 - s are right, too.
KF_SIMD_INLINE Curve by_logistic(V x, V w, V slope) {
  const V fall = min(w, -w);
  const V e = falling_exp(fall, kPerLn2, fall < splat(-87.0F));
  const V larger = splat(1.0F) / (splat(1.0F) + e), smaller = e * larger;
  const V s = w < V{} ? smaller : larger;
  return {x * s, fma(x * slope, smaller * larger, s)};
}

struct Silu {
  static Curve of(V x) { return by_logistic(x, x, splat(1.0F)); }
};

struct QuickGelu {
  static Curve of(V x) { return by_logistic(x, x * splat(1.702F), splat(1.702F)); }
};

/// x (1 + tanh(w / 2)) / 2 is x s(w).
struct GeluTanh {
  static Curve of(V x) {
    const V scale = splat(1.5957691216F);  // 2 sqrt(2 / pi)
    const V square = x * x * splat(0.044715F);
    return by_logistic(x, fma(square, x, x) * scale, fma(square, splat(3.0F), splat(1.0F)) * scale);
  }
};

/// x Phi(x). Phi(-|x|) is exp(-x^2 / 2) times a function that a polynomial of 1 / (1 + 0.33 |x|) gives so that Phi is right to 1e-8, and to
/// 4e-4 of itself down to 13.3, where fp32 ends. With what is rounded Phi is right to 3 units in the last place of 1.
struct Gelu {
  static Curve of(V x) {
    const V one = splat(1.0F);
    const V t = one / fma(max(x, -x), splat(0.33F), one);
    V p = splat(0.046019176F);
    p = fma(p, t, splat(-0.22285109F));
    p = fma(p, t, splat(0.33574413F));
    p = fma(p, t, splat(-0.094063978F));
    p = fma(p, t, splat(0.18385491F));
    p = fma(p, t, splat(0.1185636F));
    p = fma(p, t, splat(0.13273327F));
    const V square = x * x;
    const V bell = falling_exp(square, -0.5F * kPerLn2, square > splat(174.0F));
    const V tail = bell * p * t;
    const V phi = x < V{} ? tail : one - tail;
    return {x * phi, fma(x * bell, splat(0.39894228F), phi)};
  }
};

struct Relu {
  static Curve of(V x) { return {x < V{} ? V{} : x, x <= V{} ? V{} : splat(1.0F)}; }
};

struct Relu2 {
  static Curve of(V x) {
    const V positive = Relu::of(x).value;
    return {positive * positive, positive + positive};
  }
};

struct Tanh {
  static Curve of(V x) {
    const V y = tanh(x);
    return {y, splat(1.0F) - y * y};
  }
};

template <class Kind, class T>
void forward(const GateForward& of, std::int64_t first, std::int64_t end) {
  for (std::int64_t r = first; r < end; ++r) {
    const T* const gate = row_of<T>(of.gate, r);
    const T* const up = row_of<T>(of.up, r);
    T* const out = row_of<T>(of.out, r);
    each_run(of.width,
             [&](std::int64_t j, auto lanes) { lanes.store(out + j, Kind::of(lanes.load(gate + j)).value * lanes.load(up + j)); });
  }
}

template <class Kind, class T>
void backward(const GateBackward& of, std::int64_t first, std::int64_t end) {
  for (std::int64_t r = first; r < end; ++r) {
    const T* const gate = row_of<T>(of.gate, r);
    const T* const up = row_of<T>(of.up, r);
    const T* const gradient = row_of<T>(of.gradient, r);
    T* const for_gate = of.for_gate.data != nullptr ? row_of<T>(of.for_gate, r) : nullptr;
    T* const for_up = of.for_up.data != nullptr ? row_of<T>(of.for_up, r) : nullptr;
    each_run(of.width, [&](std::int64_t j, auto lanes) {
      const Curve act = Kind::of(lanes.load(gate + j));
      const V g = lanes.load(gradient + j);
      if (for_gate != nullptr) {
        lanes.store(for_gate + j, g * lanes.load(up + j) * act.slope);
      }
      if (for_up != nullptr) {
        lanes.store(for_up + j, g * act.value);
      }
    });
  }
}

template <class Kind>
void of_type(const GateForward& of, std::int64_t first, std::int64_t end) {
  of.bf16 ? forward<Kind, Bf16>(of, first, end) : forward<Kind, float>(of, first, end);
}

template <class Kind>
void of_type(const GateBackward& of, std::int64_t first, std::int64_t end) {
  of.bf16 ? backward<Kind, Bf16>(of, first, end) : backward<Kind, float>(of, first, end);
}

template <class Pass>
void of_kind(const Pass& of, std::int64_t first, std::int64_t end) {
  switch (of.kind) {
    case GateKind::silu: return of_type<Silu>(of, first, end);
    case GateKind::gelu: return of_type<Gelu>(of, first, end);
    case GateKind::gelu_tanh: return of_type<GeluTanh>(of, first, end);
    case GateKind::relu: return of_type<Relu>(of, first, end);
    case GateKind::relu2: return of_type<Relu2>(of, first, end);
    case GateKind::quick_gelu: return of_type<QuickGelu>(of, first, end);
    case GateKind::tanh: return of_type<Tanh>(of, first, end);
  }
}

}  // namespace

void gate_forward(const GateForward& of, std::int64_t first, std::int64_t end) { of_kind(of, first, end); }
void gate_backward(const GateBackward& of, std::int64_t first, std::int64_t end) { of_kind(of, first, end); }

}  // namespace kf::simd::KF_SIMD_ISA
