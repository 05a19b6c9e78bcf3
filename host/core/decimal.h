#pragma once
// Numbers as decimal text of a given length. Like everything here that writes or reads numbers, independent of the C library's locale,
// which a script can change.

#include <string>

namespace kf {

/// One digit, a point, `digits` decimals and an exponent of two digits or more: scientific(1234, 2) == "1.23e+03".
std::string scientific(double value, int digits);
/// `digits` significant digits, without zeros at the end, in the shorter of both styles: general(0.25, 6) == "0.25", general(1e9, 6) ==
/// "1e+09".
std::string general(double value, int digits);

}  // namespace kf
