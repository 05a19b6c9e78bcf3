#pragma once
// The numbers of a step. Those of every row are members, which names.def lists: a misspelt one does not compile, integers keep their 64
// bits, and a row costs no lookup and no allocation but for what is added to it.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kf {

/// Names with numbers.
using Values = std::vector<std::pair<std::string, double>>;

/// The number called `name`, the last one of them; null without one.
inline const double* find_number(const Values& values, std::string_view name) {
  const auto found = std::find_if(values.rbegin(), values.rend(), [name](const auto& value) { return value.first == name; });
  return found != values.rend() ? &found->second : nullptr;
}

/// What is a mean over the labels of a step; NaN stays NaN.
struct Means {
#define MEAN(name, unit, doc) double name = 0;
#include "metrics/names/names.def"
};

/// The term of the loss that every step has under this name; null for others.
inline double* find_term(Means& means, std::string_view name) {
#define TERM(term, unit, doc) \
  if (name == #term) {        \
    return &means.term;       \
  }
#include "metrics/names/names.def"
  return nullptr;
}

/// One logged step.
struct StepRow : Means {
  bool has_loss = true;  // false in a step without a label that counts: its means then stand for nothing
#define NUMBER(type, name, unit, doc) type name = 0;
#include "metrics/names/names.def"
  Values extra;  // numbers that not every row has, and those of hooks
};

/// f("step", false, row.step), f("loss", true, row.loss), ...: the numbers of every row, in the order of files; and which are means.
template <class Row, class F>
void each_number(Row& row, const F& f) {
#define NUMBER(type, name, unit, doc) f(#name, false, row.name);
#define MEAN(name, unit, doc) f(#name, true, row.name);
#include "metrics/names/names.def"
}

}  // namespace kf
