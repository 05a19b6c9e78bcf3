#include "kernels/adamw/byte_map.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace kf {
namespace {

/// Decade i of seven has 2^i values of each sign, or 2^(i + 1) without one: the middles of as many even pieces between 0.1 and 1, times
/// 10^(i - 6). With 0 and 1 that is 256.
std::vector<float> values_of(bool is_signed) {
  std::vector<float> out{0, 1};
  for (int decade = 0; decade < 7; ++decade) {
    const int pieces = 1 << (is_signed ? decade : decade + 1);
    for (int piece = 0; piece < pieces; ++piece) {
      const double value = (0.1 + 0.9 * (piece + 0.5) / pieces) * std::pow(10.0, decade - 6);
      out.push_back(static_cast<float>(value));
      if (is_signed) {
        out.push_back(static_cast<float>(-value));
      }
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

ByteMap made(bool is_signed) {
  ByteMap map{};
  map.is_signed = is_signed;
  const std::vector<float> values = values_of(is_signed);
  std::copy(values.begin(), values.end(), map.values);
  for (int i = 0; i < 255; ++i) {
    map.middles[i] = (values[static_cast<std::size_t>(i)] + values[static_cast<std::size_t>(i) + 1]) / 2;
  }
  map.middles[255] = std::numeric_limits<float>::infinity();
  return map;
}

}  // namespace

const ByteMap& byte_map(bool is_signed) {
  static const ByteMap with = made(true), without = made(false);
  return is_signed ? with : without;
}

}  // namespace kf
