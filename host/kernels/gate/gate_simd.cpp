#include "kernels/gate/gate_rows.h"
#include "kernels/simd/vector.h"

namespace kf::simd::KF_SIMD_ISA {
namespace {

/// An activation's value and its slope.
struct Curve {
  V value, slope;
};

/// x s(w) for the logistic s, and its slope by that of w: x' s + x s (1 - s) w'. By e^-|w|, so that small s and 1 - s are right, too.
KF_SIMD_INLINE Curve by_logistic(V x, V w, V slope) {
  const V e = exp(min(w, -w));
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

/// x Phi(x). Phi(-|x|) is exp(-x^2 / 2) times a function that a polynomial of 1 / (1 + 0.2675 |x|) gives to 2.1e-8 of itself, fitted to
/// 13.3, where fp32 ends. So Phi is right to 3 units in the last place of 1, and its tail to (x^2 / 2 + 8) of its own.
struct Gelu {
  static Curve of(V x) {
    const V one = splat(1.0F);
    const V size = max(x, -x);
    const V t = one / fma(size, splat(0.2675F), one);
    V p = splat(0.030289372F);
    p = fma(p, t, splat(-0.13714965F));
    p = fma(p, t, splat(0.19704014F));
    p = fma(p, t, splat(-0.096142865F));
    p = fma(p, t, splat(0.12510403F));
    p = fma(p, t, splat(0.065275537F));
    p = fma(p, t, splat(0.10248769F));
    p = fma(p, t, splat(0.10636278F));
    p = fma(p, t, splat(0.10673298F));
    const V bell = exp(x * x * splat(-0.5F));
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
