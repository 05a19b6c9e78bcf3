#include "core/decimal.h"

#include <array>
#include <charconv>

namespace kf {
namespace {

std::string written(double value, std::chars_format style, int digits) {
  std::array<char, 64> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, style, digits);
  return {buffer.data(), end};
}

}  // namespace

std::string scientific(double value, int digits) { return written(value, std::chars_format::scientific, digits); }

std::string general(double value, int digits) { return written(value, std::chars_format::general, digits); }

}  // namespace kf
