#include "model/draw.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <thread>
#include <vector>

#include "core/error.h"

namespace kf {
namespace {

/// Elements at a time: their words stay in the nearest cache.
constexpr std::int64_t kChunk = 1024;
/// Elements a thread should have at least: a millisecond of work.
constexpr std::int64_t kGrain = 65536;
/// Within it (85 % of all) AS 241 needs no logarithm.
constexpr double kCentre = 0.425;

using Coefficients = double[8];  // by rising power

constexpr Coefficients kCentreAbove{3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3, 1.3731693765509461125e+4,
                                    4.5921953931549871457e+4, 6.7265770927008700853e+4, 3.3430575583588128105e+4, 2.5090809287301226727e+3};
constexpr Coefficients kCentreBelow{1,
                                    4.2313330701600911252e+1,
                                    6.8718700749205790830e+2,
                                    5.3941960214247511077e+3,
                                    2.1213794301586595867e+4,
                                    3.9307895800092710610e+4,
                                    2.8729085735721942674e+4,
                                    5.2264952788528545610e+3};
constexpr Coefficients kTailAbove{1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                                  3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                                  2.27238449892691845833e-2, 7.74545014278341407640e-4};
constexpr Coefficients kTailBelow{1,
                                  2.05319162663775882187e0,
                                  1.67638483018380384940e0,
                                  6.89767334985100004550e-1,
                                  1.48103976427480074590e-1,
                                  1.51986665636164571966e-2,
                                  5.47593808499534494600e-4,
                                  1.05075007164441684324e-9};

double polynomial(const Coefficients& c, double x) {
  double sum = c[7];
  for (int i = 6; i >= 0; --i) {
    sum = sum * x + c[i];
  }
  return sum;
}

/// Of a positive, normal x: 2^e m with m within a root of 2 of 1, and ln m = 2 artanh((m - 1) / (m + 1)), whose series has s^2 < 0.0295.
double logarithm(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const std::int64_t exponent = static_cast<std::int64_t>(bits - std::bit_cast<std::uint64_t>(0.70710678118654752)) >> 52;
  const double m = std::bit_cast<double>(bits - (static_cast<std::uint64_t>(exponent) << 52));
  const double s = (m - 1) / (m + 1);
  double series = 0;
  for (int odd = 23; odd > 0; odd -= 2) {
    series = series * (s * s) + 1.0 / odd;
  }
  return static_cast<double>(exponent) * 0.69314718055994531 + 2 * s * series;
}

double central_deviate(double q) {
  const double r = kCentre * kCentre - q * q;
  return q * polynomial(kCentreAbove, r) / polynomial(kCentreBelow, r);
}

/// Without the paper's third branch, which begins at a root of 5: 32 bits end at 4.79.
double tail_deviate(double q) {
  const double r = std::sqrt(-logarithm(0.5 - std::abs(q))) - 1.6;
  return std::copysign(polynomial(kTailAbove, r) / polynomial(kTailBelow, r), q);
}

/// Philox4x32-10 in place: four numbers apart, which compilers do several blocks at a time.
inline void scramble(std::uint32_t& a, std::uint32_t& b, std::uint32_t& c, std::uint32_t& d, std::uint64_t key) {
  auto low = static_cast<std::uint32_t>(key), high = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t from_a = std::uint64_t{0xD2511F53} * a;
    const std::uint64_t from_c = std::uint64_t{0xCD9E8D57} * c;
    a = static_cast<std::uint32_t>(from_c >> 32) ^ b ^ low;
    b = static_cast<std::uint32_t>(from_c);
    c = static_cast<std::uint32_t>(from_a >> 32) ^ d ^ high;
    d = static_cast<std::uint32_t>(from_a);
    low += 0x9E3779B9;
    high += 0xBB67AE85;
  }
}

/// The words of blocks `first` and on.
void draw_words(std::uint64_t key, std::int64_t first, std::int64_t blocks, std::uint32_t* words) {
  for (std::int64_t i = 0; i < blocks; ++i) {
    const auto block = static_cast<std::uint64_t>(first + i);
    std::uint32_t a = static_cast<std::uint32_t>(block), b = static_cast<std::uint32_t>(block >> 32), c = 0, d = 0;
    scramble(a, b, c, d, key);
    words[4 * i] = a;
    words[4 * i + 1] = b;
    words[4 * i + 2] = c;
    words[4 * i + 3] = d;
  }
}

/// What the uniform numbers become: they fill the middle `share` of the distribution, and `scale` is the deviation.
struct Normal {
  double share = 1;
  double scale = 1;

  /// The words are the middles of 2^32 equal parts of (-share / 2, share / 2).
  double centred(std::uint32_t word) const {
    return (static_cast<double>(static_cast<std::int32_t>(word ^ 0x80000000U)) + 0.5) * (share * 0x1p-32);
  }

  /// The centre for all first, which is a loop without branches, then the tails again.
  void fill(const std::uint32_t* words, std::int64_t count, float* out) const {
    for (std::int64_t i = 0; i < count; ++i) {
      out[i] = static_cast<float>(scale * central_deviate(centred(words[i])));
    }
    std::int64_t tails[kChunk];
    std::int64_t found = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      tails[found] = i;
      found += std::abs(centred(words[i])) > kCentre ? 1 : 0;
    }
    for (std::int64_t i = 0; i < found; ++i) {
      out[tails[i]] = static_cast<float>(scale * tail_deviate(centred(words[tails[i]])));
    }
  }
};

/// U(-bound, bound): the words are the middles of 2^32 equal parts.
struct Uniform {
  double bound = 1;

  void fill(const std::uint32_t* words, std::int64_t count, float* out) const {
    const Normal middle{2 * bound, 1};
    for (std::int64_t i = 0; i < count; ++i) {
      out[i] = static_cast<float>(middle.centred(words[i]));
    }
  }
};

/// Elements `first` and on of the whole.
template <class Distribution>
void draw_run(const Distribution& distribution, std::uint64_t key, std::int64_t first, std::int64_t count, float* out) {
  std::uint32_t words[kChunk + 8];
  for (std::int64_t done = 0; done < count; done += kChunk) {
    const std::int64_t at = first + done;
    const std::int64_t here = std::min(kChunk, count - done);
    draw_words(key, at / 4, (at + here + 3) / 4 - at / 4, words);
    distribution.fill(words + at % 4, here, out + done);
  }
}

/// The elements of a part as runs of neighbours in the whole.
class Runs {
 public:
  Runs(const Shape& whole, const Range& range) : whole_(whole), range_(range), outer_(whole.size()) {
    while (outer_ > 0 && (outer_ == whole.size() || range.size[outer_] == whole[outer_])) {
      length_ *= range.size[--outer_];
    }
  }

  std::int64_t length() const { return length_; }

  /// Where a run begins in the whole.
  std::int64_t begin(std::int64_t run) const {
    std::int64_t out = 0, stride = 1;
    for (std::size_t dim = whole_.size(); dim-- > 0; stride *= whole_[dim]) {
      out += stride * range_.begin[dim];
      if (dim < outer_) {
        out += stride * (run % range_.size[dim]);
        run /= range_.size[dim];
      }
    }
    return out;
  }

 private:
  const Shape& whole_;
  const Range& range_;
  std::size_t outer_;  // dims before it tell the runs apart
  std::int64_t length_ = 1;
};

/// body(first, end) for shares of `count`, on as many threads as torch computes with. (at::parallel_for is a plain loop where a file is
/// compiled without OpenMP.)
template <class Body>
void in_shares(std::int64_t count, const Body& body) {
  const std::int64_t threads = std::clamp<std::int64_t>(count / kGrain, 1, at::get_num_threads());
  const std::int64_t share = (count + threads - 1) / threads;
  std::vector<std::jthread> others;  // which wait in the end
  for (std::int64_t t = 1; t < threads; ++t) {
    others.emplace_back([&body, first = t * share, end = std::min(count, (t + 1) * share)] { body(first, end); });
  }
  body(0, std::min(count, share));
}

template <class Distribution>
void fill(const at::Tensor& part, const Shape& whole, const Range& range, std::uint64_t key, const Distribution& distribution) {
  KF_CHECK(part.scalar_type() == at::kFloat && part.is_cpu() && part.is_contiguous() && part.sizes() == at::IntArrayRef(range.size),
           Code::other, "first values are drawn into contiguous fp32 on the CPU, of the shape of their range");
  const Runs runs(whole, range);
  float* const out = part.mutable_data_ptr<float>();
  in_shares(part.numel(), [&](std::int64_t first, std::int64_t end) {
    while (first < end) {
      const std::int64_t within = first % runs.length();
      const std::int64_t count = std::min(runs.length() - within, end - first);
      draw_run(distribution, key, runs.begin(first / runs.length()) + within, count, out + first);
      first += count;
    }
  });
}

}  // namespace

PhiloxWords philox(PhiloxWords counter, std::uint64_t key) {
  auto& [a, b, c, d] = counter;
  scramble(a, b, c, d, key);
  return counter;
}

double normal_deviate(double q) { return std::abs(q) <= kCentre ? central_deviate(q) : tail_deviate(q); }

void fill_normal(const at::Tensor& part, const Shape& whole, const Range& range, std::uint64_t key, double std) {
  fill(part, whole, range, key, Normal{1, std});
}

void fill_truncated(const at::Tensor& part, const Shape& whole, const Range& range, std::uint64_t key, double std) {
  constexpr double kShare = 0.95449973610364159;     // of a normal within two deviations
  constexpr double kNarrowed = 0.87962566103423978;  // the deviation that is left of 1
  fill(part, whole, range, key, Normal{kShare, std / kNarrowed});
}

void fill_uniform(const at::Tensor& part, const Shape& whole, const Range& range, std::uint64_t key, double bound) {
  fill(part, whole, range, key, Uniform{bound});
}

}  // namespace kf
