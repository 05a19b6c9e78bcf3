#include "data/loader/loader.h"

#include <algorithm>

#include "core/error.h"
#include "core/text.h"

namespace kf {

double Loader::epochs(std::int64_t index) const {
  return static_cast<double>(index) / static_cast<double>(std::max<std::int64_t>(1, batches_per_epoch()));
}

void Loader::change(std::int64_t /*index*/, const DataChange& /*change*/) {
  fail(Code::data, "{} cannot change while it is read", describe());
}

void Loader::check(const DataChange& /*change*/) const { fail(Code::data, "{} cannot change while it is read", describe()); }

std::string percent(double share) {
  const std::string text = fixed(100 * share, 1);
  return (text.ends_with(".0") ? text.substr(0, text.size() - 2) : text) + " %";
}

}  // namespace kf
