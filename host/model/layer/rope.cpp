#include "model/layer/rope.h"

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
  const at::Tensor share = (static_cast<double>(o.orig_len) / wavelength - o.low_freq) / std::max(o.high_freq - o.low_freq, 1e-9);
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

double dynamic_theta(const RopeOptions& o, std::int64_t length) {
  const auto n = static_cast<double>(o.rotated());
  const double stretch = static_cast<double>(std::max(length, o.orig_len)) / static_cast<double>(o.orig_len);
  return o.theta * std::pow(o.factor * stretch - (o.factor - 1), n / (n - 2));
}

bool stretches_by_length(const RopeOptions& o) {
  return o.scaling == RopeOptions::Scaling::dynamic || o.scaling == RopeOptions::Scaling::longrope;
}

at::Tensor components(const RopeOptions& o) {  // (n/2): 2i/n
  return at::arange(0, o.rotated(), 2, at::kFloat) / static_cast<double>(o.rotated());
}

/// The components past the fraction do not turn.
void stop_past_fraction(const RopeOptions& o, const at::Tensor& frequencies) {  // (.., n/2)
  if (o.proportional) {
    const auto turning = static_cast<std::int64_t>(o.fraction * static_cast<double>(o.head_dim) / 2);
    frequencies.narrow(-1, turning, frequencies.size(-1) - turning).zero_();
  }
}

/// What `dynamic_theta` gives, for lengths (.., 1) -> frequencies (.., n/2) fp32.
at::Tensor dynamic_frequencies(const RopeOptions& o, const at::Tensor& lengths) {
  const auto n = static_cast<double>(o.rotated());
  const at::Tensor stretch = lengths.clamp_min(o.orig_len).to(at::kDouble) / static_cast<double>(o.orig_len);
  const at::Tensor theta = (stretch * o.factor - (o.factor - 1)).pow(n / (n - 2)) * o.theta;
  at::Tensor frequencies = at::pow(theta, -components(o).to(lengths.device(), at::kDouble)).to(at::kFloat);
  stop_past_fraction(o, frequencies);
  return frequencies;
}

}  // namespace

bool same_angles(const RopeOptions& o, std::int64_t length, std::int64_t longer) {
  if (!stretches_by_length(o) || length == longer) {
    return true;
  }
  return std::max(length, longer) <= o.orig_len || (o.scaling == RopeOptions::Scaling::longrope && std::min(length, longer) > o.orig_len);
}

std::int64_t RopeOptions::rotated() const {
  return proportional ? head_dim : static_cast<std::int64_t>(static_cast<double>(head_dim) * fraction);
}

double longrope_temperature(double factor, std::int64_t orig_len) {
  return factor <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(static_cast<double>(orig_len)));
}

double yarn_temperature(double factor, double mscale) { return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1; }

at::Tensor rope_frequencies(const RopeOptions& o, std::int64_t length) {
  at::Tensor base =
      1.0 / at::pow(at::Scalar(o.scaling == RopeOptions::Scaling::dynamic ? dynamic_theta(o, length) : o.theta), components(o));
  stop_past_fraction(o, base);
  switch (o.scaling) {
    case RopeOptions::Scaling::none:
    case RopeOptions::Scaling::dynamic: return base;
    case RopeOptions::Scaling::linear: return base / o.factor;
    case RopeOptions::Scaling::llama3: return llama3_frequencies(o, base);
    case RopeOptions::Scaling::yarn: return yarn_frequencies(o, base);
    case RopeOptions::Scaling::longrope: return base / at::tensor(length > o.orig_len ? o.long_factors : o.short_factors, at::kFloat);
  }
  return base;
}

Rope::Rope(const RopeOptions& options) : options_(options) {}

bool Rope::depends_on_length() const { return stretches_by_length(options_); }

const Rope::Table& Rope::table(std::int64_t length, at::Device device) const {
  KF_CHECK(length <= options_.max_seq_len, Code::config, "{} positions exceed model.max_seq_len ({})", length, options_.max_seq_len);
  const bool stretched = depends_on_length() && length > options_.orig_len;
  Table& table = stretched ? stretched_ : usual_;
  const bool other = stretched && options_.scaling == RopeOptions::Scaling::dynamic && length != length_;
  if (!other && table.cos.defined() && table.cos.size(0) >= length && table.cos.device() == device) {
    return table;
  }
  const std::int64_t doubled = std::max<std::int64_t>(length, table.cos.defined() ? 2 * table.cos.size(0) : 256);
  const std::int64_t rows = std::min(doubled, options_.max_seq_len);
  const at::Tensor angles = at::outer(at::arange(rows, at::kFloat), rope_frequencies(options_, stretched ? length : 0));  // (rows, n/2)
  table = {(angles.cos() * options_.gain).to(device), (angles.sin() * options_.gain).to(device)};
  length_ = stretched ? length : length_;
  return table;
}

Rope::Table Rope::angles(std::int64_t length, at::Device device) const {
  const Table& all = table(length, device);
  return {all.cos.narrow(0, 0, length), all.sin.narrow(0, 0, length)};
}

at::Tensor Rope::rotate(const at::Tensor& x, std::int64_t first, const at::Tensor& positions) const {
  const std::int64_t length = x.size(2);
  const Table& all = table(first + length, x.device());
  const auto rows = [&](const at::Tensor& values) {  // (T, n/2), or (B or 1, 1, T, n/2)
    return positions.defined() ? values.index({positions}).unsqueeze(1) : values.narrow(0, first, length);
  };
  return turned(x, rows(all.cos), rows(all.sin));
}

Rope::Table Rope::angles_of(const at::Tensor& positions, const at::Tensor& lengths) const {
  if (options_.scaling == RopeOptions::Scaling::dynamic) {
    const at::Tensor angles = positions.to(at::kFloat).unsqueeze(-1) * dynamic_frequencies(options_, lengths.unsqueeze(-1));
    return {(angles.cos() * options_.gain).unsqueeze(1), (angles.sin() * options_.gain).unsqueeze(1)};
  }
  const auto angles = [&](std::int64_t length) {  // (B or 1, T, n/2)
    return positions.to(at::kFloat).unsqueeze(-1) * rope_frequencies(options_, length).to(positions.device());
  };
  const at::Tensor chosen = at::where(lengths.gt(options_.orig_len).unsqueeze(-1), angles(options_.orig_len + 1), angles(0));
  return {(chosen.cos() * options_.gain).unsqueeze(1), (chosen.sin() * options_.gain).unsqueeze(1)};
}

at::Tensor Rope::rotate_texts(const at::Tensor& x, const at::Tensor& positions, const at::Tensor& lengths) const {
  if (!positions.is_same(texts_positions_) || !lengths.is_same(texts_lengths_)) {
    texts_ = angles_of(positions, lengths);
    texts_positions_ = positions;
    texts_lengths_ = lengths;
  }
  return turned(x, texts_.cos, texts_.sin);
}

at::Tensor Rope::turned(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) const {
  return options_.kernels->rotation(x, cos, sin, options_.interleaved);
}

std::shared_ptr<const Rope> RopeTables::get(const RopeOptions& options) {
  std::shared_ptr<const Rope>& table = tables_[options];
  if (!table) {
    table = std::make_shared<const Rope>(options);
  }
  return table;
}

}  // namespace kf
