#include "parallel/graph.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <functional>
#include <numeric>
#include <utility>

namespace kf {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

/// From a tensor to another one; also from the gradient of a result to that of what it was made of.
using Way = std::function<at::Tensor(const at::Tensor&)>;

struct Crossing : torch::autograd::Function<Crossing> {
  struct Held : torch::CustomClassHolder {
    explicit Held(Way way) : back(std::move(way)) {}
    Way back;
  };
  static Variable forward(AutogradContext* context, const Variable& x, const Way& there, const Way& back) {
    context->saved_data["back"] = c10::IValue::make_capsule(c10::make_intrusive<Held>(back));
    return there(x);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto held = c10::static_intrusive_pointer_cast<Held>(context->saved_data["back"].toCapsule());
    return {held->back(gradients[0]), Variable(), Variable()};
  }
};

/// `dim` in front, one block of memory: how groups take rows.
at::Tensor rows_first(const at::Tensor& x, std::int64_t dim) { return x.movedim(dim, 0).contiguous(); }
at::Tensor rows_back(const at::Tensor& x, std::int64_t dim) { return x.movedim(0, dim).contiguous(); }

at::Tensor sum_of(const at::Tensor& x, Group& group) {
  at::Tensor out = x.clone(at::MemoryFormat::Contiguous);
  group.sum(out);
  return out;
}

at::Tensor gather_of(const at::Tensor& part, std::int64_t dim, std::int64_t length, Group& group) {
  return rows_back(group.gathered(rows_first(part, dim), length), dim);
}

at::Tensor scatter_of(const at::Tensor& x, std::int64_t dim, Group& group) { return rows_back(group.scattered(rows_first(x, dim)), dim); }

at::Tensor gather_of(const at::Tensor& part, std::int64_t dim, const std::vector<std::int64_t>& rows, Group& group) {
  const at::Tensor mine = rows_first(part, dim);
  std::vector<std::int64_t> shape = mine.sizes().vec();
  shape[0] = std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
  const at::Tensor whole = at::empty(shape, mine.options());
  group.gather(whole, mine, rows);
  return rows_back(whole, dim);
}

at::Tensor scatter_of(const at::Tensor& x, std::int64_t dim, const std::vector<std::int64_t>& rows, Group& group) {
  const at::Tensor whole = rows_first(x, dim);
  std::vector<std::int64_t> shape = whole.sizes().vec();
  shape[0] = rows[static_cast<std::size_t>(group.rank())];
  const at::Tensor part = at::empty(shape, whole.options());
  group.scatter_sum(part, whole, rows);
  return rows_back(part, dim);
}

at::Tensor view_of_part(const at::Tensor& x, std::int64_t dim, const Group& group) {
  const std::vector<std::int64_t> rows = even_rows(x.size(dim), group.size());
  const std::int64_t begin = std::accumulate(rows.begin(), rows.begin() + group.rank(), std::int64_t{0});
  return x.narrow(dim, begin, rows[static_cast<std::size_t>(group.rank())]);
}

at::Tensor part_of(const at::Tensor& x, std::int64_t dim, Group& group) {
  return view_of_part(x, dim, group).clone(at::MemoryFormat::Contiguous);
}

/// The same x -> partial: each rank has its part of it, and 0 elsewhere.
at::Tensor counted_once(const at::Tensor& x, std::int64_t dim, Group& group) {
  return Crossing::apply(x, Way([=, &group](const at::Tensor& in) {
                           at::Tensor out = at::zeros(in.sizes(), in.options());
                           view_of_part(out, dim, group).copy_(view_of_part(in, dim, group));
                           return out;
                         }),
                         Way([=, &group](const at::Tensor& g) { return alike(g, dim, group); }));
}

}  // namespace

at::Tensor shared(const at::Tensor& x, Group& group) {
  if (group.size() == 1) {
    return x;
  }
  return Crossing::apply(x, Way([](const at::Tensor& in) { return in.view_as(in); }),
                         Way([&group](const at::Tensor& g) { return summed(g, group); }));
}

at::Tensor summed(const at::Tensor& x, Group& group) {
  if (group.size() == 1) {
    return x;
  }
  return Crossing::apply(x, Way([&group](const at::Tensor& in) { return sum_of(in, group); }),
                         Way([&group](const at::Tensor& g) { return shared(g, group); }));
}

at::Tensor gathered(const at::Tensor& part, std::int64_t dim, std::int64_t length, Group& group) {
  if (group.size() == 1) {
    return part;
  }
  return Crossing::apply(part, Way([=, &group](const at::Tensor& in) { return gather_of(in, dim, length, group); }),
                         Way([=, &group](const at::Tensor& g) { return scattered(g, dim, group); }));
}

at::Tensor scattered(const at::Tensor& x, std::int64_t dim, Group& group) {
  if (group.size() == 1) {
    return x;
  }
  return Crossing::apply(x, Way([=, &group](const at::Tensor& in) { return scatter_of(in, dim, group); }),
                         Way([=, length = x.size(dim), &group](const at::Tensor& g) { return gathered(g, dim, length, group); }));
}

at::Tensor gathered(const at::Tensor& part, std::int64_t dim, const std::vector<std::int64_t>& rows, Group& group) {
  if (group.size() == 1) {
    return part;
  }
  return Crossing::apply(part, Way([=, &group](const at::Tensor& in) { return gather_of(in, dim, rows, group); }),
                         Way([=, &group](const at::Tensor& g) { return scattered(g, dim, rows, group); }));
}

at::Tensor scattered(const at::Tensor& x, std::int64_t dim, const std::vector<std::int64_t>& rows, Group& group) {
  if (group.size() == 1) {
    return x;
  }
  return Crossing::apply(x, Way([=, &group](const at::Tensor& in) { return scatter_of(in, dim, rows, group); }),
                         Way([=, &group](const at::Tensor& g) { return gathered(g, dim, rows, group); }));
}

at::Tensor alike(const at::Tensor& whole, std::int64_t dim, Group& group) {
  if (group.size() == 1) {
    return whole;
  }
  return Crossing::apply(whole, Way([](const at::Tensor& in) { return in.view_as(in); }),
                         Way([=, &group](const at::Tensor& g) { return counted_once(g, dim, group); }));
}

at::Tensor own_part(const at::Tensor& x, std::int64_t dim, Group& group) {
  if (group.size() == 1) {
    return x;
  }
  return Crossing::apply(x, Way([=, &group](const at::Tensor& in) { return part_of(in, dim, group); }),
                         Way([=, length = x.size(dim), &group](const at::Tensor& g) { return joined(g, dim, length, group); }));
}

at::Tensor joined(const at::Tensor& part, std::int64_t dim, std::int64_t length, Group& group) {
  if (group.size() == 1) {
    return part;
  }
  return Crossing::apply(part, Way([=, &group](const at::Tensor& in) { return gather_of(in, dim, length, group); }),
                         Way([=, &group](const at::Tensor& g) { return own_part(g, dim, group); }));
}

at::Tensor exchanged(const at::Tensor& x, const Splits& splits, Group& group) {
  if (group.size() == 1) {
    return x;
  }
  return Crossing::apply(x, Way([=, &group](const at::Tensor& in) { return group.exchanged(in.contiguous(), splits); }),
                         Way([=, &group](const at::Tensor& g) {
                           return exchanged(g, Splits{splits.received, splits.sent}, group);
                         }));
}

}  // namespace kf
