#include "data/template/operators.h"

#include <cmath>
#include <cstdint>
#include <optional>

#include "core/error.h"
#include "data/template/functions.h"

namespace kf::jinja {
namespace {

/// Nothing where the result does not fit. `j` is not 0 where it divides.
std::optional<std::int64_t> of_whole(std::int64_t i, std::string_view op, std::int64_t j) {
  std::int64_t out = 0;
  if (op == "//" || op == "%") {
    if (j == -1) {  // the processor itself faults at the smallest integer
      return op == "%" ? std::optional<std::int64_t>(0) : of_whole(0, "-", i);
    }
    const std::int64_t rest = i % j;
    const bool downwards = rest != 0 && (rest < 0) != (j < 0);
    if (op == "%") {
      return rest + (downwards ? j : 0);
    }
    return i / j - (downwards ? 1 : 0);
  }
  bool over = false;
  if (op == "+") {
    over = __builtin_add_overflow(i, j, &out);
  } else if (op == "-") {
    over = __builtin_sub_overflow(i, j, &out);
  } else {
    over = __builtin_mul_overflow(i, j, &out);
  }
  return over ? std::nullopt : std::optional(out);
}

/// i^j for j >= 0.
std::optional<std::int64_t> power(std::int64_t i, std::int64_t j) {
  std::int64_t out = 1;
  for (; j > 0; j >>= 1) {
    if (j % 2 == 1 && __builtin_mul_overflow(out, i, &out)) {
      return std::nullopt;
    }
    if (j > 1 && __builtin_mul_overflow(i, i, &i)) {
      return std::nullopt;
    }
  }
  return out;
}

double of_real(double x, std::string_view op, double y) {
  if (op == "**") {
    return std::pow(x, y);
  }
  if (op == "//") {
    return std::floor(x / y);
  }
  switch (op.front()) {
    case '+': return x + y;
    case '-': return x - y;
    case '*': return x * y;
    case '/': return x / y;
    default: return x - y * std::floor(x / y);  // %
  }
}

}  // namespace

Value arithmetic(const Value& a, std::string_view op, const Value& b) {
  std::int64_t rooms[2] = {0, 0};
  const std::int64_t* const i = a.whole(rooms[0]);
  const std::int64_t* const j = b.whole(rooms[1]);
  const bool divides = op == "/" || op == "//" || op == "%";
  KF_CHECK(!divides || b.number() != 0, Code::data, "a division by zero");
  if (i == nullptr || j == nullptr || op == "/" || (op == "**" && *j < 0)) {
    return of_real(a.number(), op, b.number());
  }
  const std::optional<std::int64_t> out = op == "**" ? power(*i, *j) : of_whole(*i, op, *j);
  KF_CHECK(out, Code::data, "{} {} {} does not fit in 64 bits", *i, op, *j);
  return *out;
}

Value repeated(const Value& text, const Value& times) {
  std::int64_t room = 0;
  const std::int64_t* const count = times.whole(room);
  KF_CHECK(count != nullptr, Code::data, "a string times {}", times.kind());
  Text out;
  for (std::int64_t i = 0; i < *count; ++i) {
    KF_CHECK(out.size() < kMostText, Code::data, "a text of more than {} bytes", kMostText);
    out.append(*text.text());
  }
  return out;
}

bool holds(const Value& a, std::string_view op, const Value& b) {
  if (op == "==" || op == "!=") {
    return equal(a, b) == (op == "==");
  }
  if (op == "in" || op == "not in") {
    return contains(b, a) == (op == "in");
  }
  const int order = compare(a, b);
  if (order == 0) {
    return op == "<=" || op == ">=";
  }
  return op.front() == (order < 0 ? '<' : '>');
}

}  // namespace kf::jinja
