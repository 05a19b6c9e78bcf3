#include "checkpoint/soup.h"

#include <ATen/ATen.h>

#include <set>

#include "core/error.h"

namespace kf {
namespace {

std::string shape_text(const Shape& shape) {
  std::vector<std::string> parts;
  for (const std::int64_t dim : shape) {
    parts.push_back(std::to_string(dim));
  }
  return "(" + join(parts, ", ") + ")";
}

/// What `other` has otherwise than `first`; "" for nothing.
std::string misfits(const WeightsAt& first, const WeightsAt& other) {
  std::vector<std::string> missing, unknown, shapes, values;
  const std::set<std::string> names(other.tensors.names.begin(), other.tensors.names.end());
  const std::set<std::string> wanted(first.tensors.names.begin(), first.tensors.names.end());
  for (const std::string& name : wanted) {
    if (!names.contains(name)) {
      missing.push_back(name);
      continue;
    }
    const TensorKind a = first.tensors.ranged->kind(name), b = other.tensors.ranged->kind(name);
    if (a.shape != b.shape) {
      shapes.push_back(format("{} is {} and not {}", name, shape_text(b.shape), shape_text(a.shape)));
    } else if (!c10::isFloatingType(a.type) && (a.type != b.type || !at::equal(first.tensors.get(name), other.tensors.get(name)))) {
      values.push_back(name);
    }
  }
  for (const std::string& name : names) {
    if (!wanted.contains(name)) {
      unknown.push_back(name);
    }
  }
  const std::string text = list_names("lacks", missing) + list_names("has besides", unknown) + list_names("of other shapes", shapes) +
                           list_names("whole numbers that differ", values);
  const bool frozen = first.state && other.state && first.state->left_out.crc32 != other.state->left_out.crc32;
  const std::string beside = frozen ? "\n  was trained beside other frozen weights (checkpoint.save_frozen = false)" : "";
  return text.empty() && beside.empty() ? "" : format("\n{}{}{}", other.path, text, beside);
}

/// One of the tensors of a mean.
at::Tensor part_of(const WeightsAt& source, const std::string& name, Spoiled& not_finite) {
  at::Tensor out = source.tensors.get(name);
  if (c10::isFloatingType(out.scalar_type())) {
    note_spoiled(not_finite, format("{} of {}", name, source.path.string()), out.isfinite().logical_not());
  }
  return out;
}

at::Tensor mean_of(const std::vector<WeightsAt>& all, const std::string& name, Spoiled& not_finite) {
  at::Tensor first = part_of(all.front(), name, not_finite);
  if (all.size() == 1 || !c10::isFloatingType(first.scalar_type())) {
    return first;
  }
  const at::Tensor sum = first.to(first.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
  for (std::size_t i = 1; i < all.size(); ++i) {
    sum.add_(part_of(all[i], name, not_finite));
  }
  return sum.div_(static_cast<double>(all.size())).to(first.scalar_type());
}

}  // namespace

NamedTensors soup(const std::vector<WeightsAt>& all, Spoiled& not_finite) {
  std::string faults;
  for (const WeightsAt& other : all) {
    faults += misfits(all.front(), other);
  }
  KF_CHECK(faults.empty(), Code::checkpoint, "these have not the weights of {}, so there is no average:{}", all.front().path, faults);
  NamedTensors out = all.front().tensors;
  out.get = [&all, &not_finite](const std::string& name) { return mean_of(all, name, not_finite); };
  out.ranged->read = [get = out.get](const TensorPiece& into) { into.tensor.copy_(into.range.of(get(into.name))); };
  return out;
}

}  // namespace kf
