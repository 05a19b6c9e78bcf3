#include "model/rope.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace kf {
namespace {

constexpr double kPi = 3.14159265358979323846;

/// Long wavelengths are divided by factor, short ones stay, those between are blended.
at::Tensor llama3_frequencies(const RopeOptions& o, const at::Tensor& base) {
  const double longest = static_cast<double>(o.orig_len) / o.low_freq;
  const double shortest = static_cast<double>(o.orig_len) / o.high_freq;
  const at::Tensor wavelength = 2 * kPi / base;
  const at::Tensor share = (static_cast<double>(o.orig_len) / wavelength - o.low_freq) / (o.high_freq - o.low_freq);
  const at::Tensor blended = (1 - share) * base / o.factor + share * base;
  return at::where(wavelength.gt(longest), base / o.factor, at::where(wavelength.lt(shortest), base, blended));
}

/// The component that turns `rotations` times over orig_len positions, as a real number.
double component_of(const RopeOptions& o, double rotations) {
  const auto n = static_cast<double>(o.rotated());
  return n * std::log(static_cast<double>(o.orig_len) / (rotations * 2 * kPi)) / (2 * std::log(o.theta));
}

at::Tensor yarn_frequencies(const RopeOptions& o, const at::Tensor& base) {
  double low = component_of(o, o.beta_fast);
  double high = component_of(o, o.beta_slow);
  if (o.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(o.rotated() - 1));
  if (low == high) {
    high += 0.001;  // no division by 0
  }
  const at::Tensor stretched = ((at::arange(o.rotated() / 2, at::kFloat) - low) / (high - low)).clamp(0, 1);
  return base / o.factor * stretched + base * (1 - stretched);
}

}  // namespace

std::int64_t RopeOptions::rotated() const {
  return proportional ? head_dim : static_cast<std::int64_t>(static_cast<double>(head_dim) * fraction);
}

double yarn_temperature(double factor, double mscale) { return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1; }

at::Tensor rope_frequencies(const RopeOptions& o) {
  const std::int64_t width = o.rotated();
  const at::Tensor exponents = at::arange(0, width, 2, at::kFloat) / static_cast<double>(width);  // (n/2)
  at::Tensor base = 1.0 / at::pow(at::Scalar(o.theta), exponents);
  if (o.proportional) {  // the components past the fraction have angle 0
    const auto turning = static_cast<std::int64_t>(o.fraction * static_cast<double>(o.head_dim) / 2);
    base.narrow(0, turning, width / 2 - turning).zero_();
  }
  switch (o.scaling) {
    case RopeOptions::Scaling::none: return base;
    case RopeOptions::Scaling::linear: return base / o.factor;
    case RopeOptions::Scaling::llama3: return llama3_frequencies(o, base);
    case RopeOptions::Scaling::yarn: return yarn_frequencies(o, base);
  }
  return base;
}

Rope::Rope(const RopeOptions& options) : options_(options), frequencies_(rope_frequencies(options)) {}

void Rope::extend(std::int64_t length, at::Device device) const {
  if (cos_.defined() && cos_.size(0) >= length && cos_.device() == device) {
    return;
  }
  KF_CHECK(length <= options_.max_seq_len, Code::config, "{} positions exceed model.max_seq_len ({})", length, options_.max_seq_len);
  const std::int64_t doubled = std::max<std::int64_t>(length, cos_.defined() ? 2 * cos_.size(0) : 256);
  const std::int64_t rows = std::min(doubled, options_.max_seq_len);
  const at::Tensor angles = at::outer(at::arange(rows, at::kFloat), frequencies_);  // (rows, n/2)
  cos_ = (angles.cos() * options_.gain).to(device);
  sin_ = (angles.sin() * options_.gain).to(device);
}

at::Tensor Rope::rotate(const at::Tensor& x, std::int64_t first) const {
  const std::int64_t length = x.size(2);
  const std::int64_t width = options_.rotated();
  extend(first + length, x.device());
  const at::Tensor cos = cos_.narrow(0, first, length);  // (T, n/2)
  const at::Tensor sin = sin_.narrow(0, first, length);
  const at::Tensor part = width == x.size(3) ? x : x.narrow(3, 0, width);
  // bf16 * fp32 promotes to fp32: long positions keep their angles.
  at::Tensor turned;
  if (options_.interleaved) {
    const at::Tensor pairs = part.unflatten(3, {width / 2, 2});
    const at::Tensor a = pairs.select(4, 0);
    const at::Tensor b = pairs.select(4, 1);
    turned = at::stack({a * cos - b * sin, b * cos + a * sin}, -1).flatten(3);
  } else {
    const std::vector<at::Tensor> halves = part.chunk(2, -1);
    turned = at::cat({halves[0] * cos - halves[1] * sin, halves[1] * cos + halves[0] * sin}, -1);
  }
  turned = turned.to(x.scalar_type());
  return width == x.size(3) ? turned : at::cat({turned, x.narrow(3, width, x.size(3) - width)}, -1);
}

std::shared_ptr<const Rope> RopeTables::get(const RopeOptions& options) {
  std::shared_ptr<const Rope>& table = tables_[options];
  if (!table) {
    table = std::make_shared<const Rope>(options);
  }
  return table;
}

}  // namespace kf
