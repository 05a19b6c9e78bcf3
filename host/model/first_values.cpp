#include "model/first_values.h"

#include <ATen/ATen.h>

#include "model/draw.h"
#include "model/seed.h"

namespace kf {
namespace {

/// A matrix or vector that one name stands for.
void draw(const at::Tensor& part, const Init& init, const Shape& whole, const Range& range, std::uint64_t key) {
  const auto fill = init.kind == Init::Kind::truncated ? fill_truncated : init.kind == Init::Kind::uniform ? fill_uniform : fill_normal;
  fill(part, whole, range, key, init.std);
}

Shape without_first(const Shape& shape) { return {shape.begin() + 1, shape.end()}; }

void draw_stack(const at::Tensor& part, const Parameter& parameter, std::uint64_t seed, const Range& range) {
  const Range within{without_first(range.begin), without_first(range.size)};
  const Shape whole = without_first(parameter.shape);
  for (const std::vector<StoredView>& form : parameter.forms()) {
    for (const StoredView& view : form) {
      const std::int64_t place = view.slice - range.begin.front();
      if (view.slice >= 0 && place >= 0 && place < range.size.front()) {
        draw(part.select(0, place), parameter.init, whole, within, seed_of(seed, view.name));
      }
    }
  }
}

}  // namespace

at::Tensor first_values(const Parameter& parameter, std::uint64_t seed, const Range& range) {
  const Init& init = parameter.init;
  at::Tensor part = at::empty(range.size, at::kFloat);
  switch (init.kind) {
    case Init::Kind::ones: return part.fill_(1);
    case Init::Kind::zeros: return part.zero_();
    case Init::Kind::constant: return part.fill_(init.std);
    case Init::Kind::given: return part.copy_(range.of(init.values));
    case Init::Kind::normal:
    case Init::Kind::uniform:
    case Init::Kind::truncated: break;
  }
  if (parameter.stack) {
    draw_stack(part, parameter, seed, range);
  } else {
    draw(part, init, parameter.shape, range, seed_of(seed, parameter.name));
  }
  return part;
}

}  // namespace kf
