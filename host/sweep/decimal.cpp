#include "sweep/decimal.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>

namespace kf::sweep {
namespace {

__extension__ using Wide = __int128;

/// digits * 10^exponent.
struct Decimal {
  Wide digits = 0;
  int exponent = 0;
};

/// The shortest decimal that reads back to the same double; finite numbers.
Decimal decimal_of(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), std::abs(value), std::chars_format::scientific).ptr;
  Decimal out;
  bool fraction = false;
  for (const char* at = text.data(); at != end; ++at) {
    if (*at == 'e') {
      int power = 0;
      std::from_chars(at[1] == '+' ? at + 2 : at + 1, end, power);
      out.exponent += power;
      break;
    }
    if (*at == '.') {
      fraction = true;
      continue;
    }
    out.digits = out.digits * 10 + (*at - '0');
    out.exponent -= fraction ? 1 : 0;
  }
  out.digits = value < 0 ? -out.digits : out.digits;
  return out;
}

Wide scaled(const Decimal& number, int exponent) {
  Wide out = number.digits;
  for (int i = exponent; i < number.exponent; ++i) {
    out *= 10;
  }
  return out;
}

double to_double(Wide digits, int exponent) {
  std::string text;
  for (Wide rest = digits < 0 ? -digits : digits; rest > 0; rest /= 10) {
    text.insert(text.begin(), static_cast<char>('0' + static_cast<int>(rest % 10)));
  }
  text = (digits < 0 ? "-" : "") + (text.empty() ? "0" : text) + "e" + std::to_string(exponent);
  double out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

}  // namespace

Steps steps_between(double low, double high, double step) {
  const Decimal l = decimal_of(low), h = decimal_of(high), s = decimal_of(step);
  const int exponent = std::min({l.digits != 0 ? l.exponent : h.exponent, h.digits != 0 ? h.exponent : l.exponent, s.exponent});
  const auto room = [exponent](const Decimal& number) { return number.digits == 0 || number.exponent - exponent <= 18; };
  if (!room(l) || !room(h) || !room(s)) {  // 17 digits and 18 zeros are below 10^35
    const double count = std::floor((high - low) / step);
    return {count < 9e18 ? static_cast<std::int64_t>(count) : std::int64_t{9'000'000'000'000'000'000}, std::min(high, low + count * step)};
  }
  const auto at = [exponent](const Decimal& number) { return number.digits == 0 ? Wide(0) : scaled(number, exponent); };
  const Wide range = at(h) - at(l), each = at(s), count = range / each;
  const auto most = std::int64_t{9'000'000'000'000'000'000};
  return {count < most ? static_cast<std::int64_t>(count) : most, range % each == 0 ? high : to_double(at(l) + count * each, exponent)};
}

}  // namespace kf::sweep
