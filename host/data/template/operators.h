#pragma once
// What the operators of templates do to values, as Python's.

#include <cstddef>
#include <string_view>

#include "data/template/value.h"

namespace kf::jinja {

constexpr std::size_t kMostText = std::size_t{1} << 30;  // bytes of a text that a template makes

/// Of two numbers: whole ones stay whole but for "/", and "//" and "%" round downwards. Throws Code::data for a division by zero and for
/// what does not fit in 64 bits (Python's integers have no bound).
Value arithmetic(const Value& a, std::string_view op, const Value& b);
/// `text` as many times. Throws Code::data where that is no whole number, and beyond kMostText.
Value repeated(const Value& text, const Value& times);
/// a == b, a in b, a <= b, ...
bool holds(const Value& a, std::string_view op, const Value& b);

}  // namespace kf::jinja
