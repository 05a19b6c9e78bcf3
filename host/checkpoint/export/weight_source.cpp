#include "checkpoint/export/weight_source.h"

#include <ATen/ATen.h>

#include <map>
#include <memory>
#include <utility>

#include "core/error.h"
#include "optim/averaging.h"

namespace kf {
namespace {

/// Tensors by name, of which ranges can be read.
struct Tensors {
  std::function<bool(const std::string&)> contains;
  std::function<at::Tensor(const std::string&)> whole;
  std::function<at::Tensor(const std::string&, std::int64_t)> slice;  // along dim 0
};

Tensors tensors_of(const StoredTensors& stored) {
  return {[&stored](const std::string& name) { return stored.contains(name); },
          [&stored](const std::string& name) { return stored.tensor(name); },
          [&stored](const std::string& name, std::int64_t index) {
            Range range = Range::whole(stored.shape(name));
            range.begin[0] = index;
            range.size[0] = 1;
            const at::Tensor out = at::empty(range.size, at::TensorOptions().dtype(stored.type(name)));
            stored.read({name, stored.shape(name), range, out});
            return out.squeeze(0);
          }};
}

at::Tensor turned(const at::Tensor& tensor, bool turn) { return turn ? tensor.transpose(-1, -2) : tensor; }

/// The part of a weight that `view` shows, out of the form in which `from` has it; nothing where it has none of its names.
std::optional<at::Tensor> find(const Tensors& from, const Parameter& parameter, const StoredView& view) {
  if (from.contains(view.name)) {
    return from.whole(view.name);
  }
  for (const std::vector<StoredView>& form : parameter.forms()) {
    if (!from.contains(form.front().name)) {
      continue;
    }
    if (form.front().slice < 0) {  // one stack, of which a matrix is asked for
      const StoredView& stack = form.front();
      const at::Tensor part = view.slice < 0 ? from.whole(stack.name) : from.slice(stack.name, view.slice);
      return turned(part, stack.transposed != view.transposed);
    }
    std::vector<at::Tensor> parts;
    for (const StoredView& one : form) {
      parts.push_back(from.whole(one.name));
    }
    return turned(at::stack(parts), view.transposed);
  }
  return std::nullopt;
}

/// Of tensors that are named and shaped as the weights themselves, behind a prefix.
std::optional<at::Tensor> find_as_weight(const Tensors& from, const std::string& prefix, const Parameter& parameter,
                                         const StoredView& view) {
  const std::string name = prefix + parameter.name;
  if (!from.contains(name)) {
    return std::nullopt;
  }
  return turned(view.slice < 0 ? from.whole(name) : from.slice(name, view.slice), view.transposed);
}

WeightSource with_fallback(std::function<std::optional<at::Tensor>(const Parameter&, const StoredView&)> first, WeightSource then) {
  return [first = std::move(first), then = std::move(then)](const Parameter& parameter, const StoredView& view) {
    std::optional<at::Tensor> found = first(parameter, view);
    return found ? std::move(*found) : then(parameter, view);
  };
}

WeightSource averages(const CheckpointReader& checkpoint, WeightSource saved) {
  const AverageTensors from = average_tensors(checkpoint);
  if (!from.stored) {
    return saved;
  }
  return with_fallback([from](const Parameter& parameter,
                              const StoredView& view) { return find_as_weight(tensors_of(*from.stored), from.prefix, parameter, view); },
                       std::move(saved));
}

WeightSource raw(const CheckpointReader& checkpoint, WeightSource saved) {
  const std::optional<double> beta = schedule_free_beta(checkpoint);
  if (!beta) {
    return saved;
  }
  return with_fallback(
      [&checkpoint, beta](const Parameter& parameter, const StoredView& view) {
        const Tensors moments = tensors_of(checkpoint.moments());
        const std::optional<at::Tensor> z = find_as_weight(moments, "z.", parameter, view);
        const std::optional<at::Tensor> x = find_as_weight(moments, "x.", parameter, view);
        return z && x ? std::optional(z->lerp(*x, *beta)) : std::nullopt;
      },
      std::move(saved));
}

}  // namespace

WeightSource weights_in(const CheckpointReader& checkpoint, WeightKind kind) {
  WeightSource saved = [&checkpoint](const Parameter& parameter, const StoredView& view) {
    std::optional<at::Tensor> found = find(tensors_of(checkpoint.weights()), parameter, view);
    KF_CHECK(found, Code::checkpoint, "{} holds no '{}'", checkpoint.path(), parameter.name);
    return std::move(*found);
  };
  return kind == WeightKind::saved ? saved : kind == WeightKind::average ? averages(checkpoint, saved) : raw(checkpoint, saved);
}

WeightSource weights_in(const std::vector<std::pair<std::string, at::Tensor>>& tensors) {
  const auto by_name = std::make_shared<const std::map<std::string, at::Tensor>>(tensors.begin(), tensors.end());
  const Tensors from{[by_name](const std::string& name) { return by_name->contains(name); },
                     [by_name](const std::string& name) { return by_name->at(name); },
                     [by_name](const std::string& name, std::int64_t index) { return by_name->at(name).select(0, index); }};
  return [from](const Parameter& parameter, const StoredView& view) {
    std::optional<at::Tensor> found = find(from, parameter, view);
    KF_CHECK(found, Code::checkpoint, "the model holds no '{}'", parameter.name);
    return std::move(*found);
  };
}

}  // namespace kf
