// The two forms of a stack of experts, told from names alone: model/parameter.h has them for a model.

#include <ATen/ATen.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include "checkpoint/weights_at.h"
#include "core/error.h"

namespace kf {
namespace {

constexpr const char* kStacks[] = {"gate", "up", "down"};
constexpr std::string_view kExperts = "experts.";

/// One expert of a stack: "layers.0.mlp.experts.3.gate_proj.weight" is 3 of "layers.0.mlp.gate_w".
struct Member {
  std::string stack;
  std::int64_t expert = 0;
};

/// "gate_proj.weight" as "gate_w", "gate_proj.bias" as "gate_bias"; "" for anything else.
std::string packed_word(std::string_view word) {
  for (const std::string stack : kStacks) {
    if (word == stack + "_proj.weight") {
      return stack + "_w";
    }
    if (word == stack + "_proj.bias") {
      return stack + "_bias";
    }
  }
  return {};
}

std::optional<Member> member_of(const std::string& name) {
  const std::size_t at = name.rfind(kExperts);
  if (at == std::string::npos || (at > 0 && name[at - 1] != '.')) {
    return std::nullopt;
  }
  const char* const begin = name.data() + at + kExperts.size();
  const char* const end = name.data() + name.size();
  Member out;
  const auto [dot, error] = std::from_chars(begin, end, out.expert);
  if (error != std::errc() || dot == end || *dot != '.' || out.expert < 0) {
    return std::nullopt;
  }
  const std::string word = packed_word({dot + 1, end});
  out.stack = name.substr(0, at) + word;
  return word.empty() ? std::nullopt : std::optional(out);
}

/// The other way; dims tell a stack from a weight that is called alike.
std::optional<std::pair<std::string, std::string>> stack_of(const std::string& name, std::size_t dims) {
  const std::size_t dot = name.rfind('.') + 1;  // 0 where there is none
  for (const std::string stack : kStacks) {
    if (name.substr(dot) == stack + "_w" && dims == 3) {
      return std::pair(name.substr(0, dot) + std::string(kExperts), "." + stack + "_proj.weight");
    }
    if (name.substr(dot) == stack + "_bias" && dims == 2) {
      return std::pair(name.substr(0, dot) + std::string(kExperts), "." + stack + "_proj.bias");
    }
  }
  return std::nullopt;
}

/// A matrix stands the other way round in a packed stack: (in, out).
at::Tensor turned(const at::Tensor& tensor) { return tensor.dim() == 2 ? tensor.t() : tensor; }

Shape turned(Shape shape) {
  if (shape.size() == 2) {
    std::swap(shape[0], shape[1]);
  }
  return shape;
}

/// Without `ranged.read`: nobody reads ranges of what is converted.
NamedTensors by_kinds(std::map<std::string, TensorKind> kinds, std::function<at::Tensor(const std::string&)> get) {
  NamedTensors out;
  for (const auto& [name, kind] : kinds) {
    out.names.push_back(name);
  }
  out.get = get;
  out.ranged = {[kinds = std::move(kinds)](const std::string& name) { return kinds.at(name); },
                [get = std::move(get)](const TensorPiece& into) { into.tensor.copy_(into.range.of(get(into.name))); }};
  return out;
}

NamedTensors packed(const NamedTensors& tensors, const fs::path& path) {
  std::map<std::string, std::map<std::int64_t, std::string>> stacks;
  std::map<std::string, TensorKind> kinds;
  for (const std::string& name : tensors.names) {
    if (const auto member = member_of(name)) {
      stacks[member->stack][member->expert] = name;
    } else {
      kinds[name] = tensors.ranged->kind(name);
    }
  }
  std::vector<std::string> faults;
  for (const auto& [stack, members] : stacks) {
    const TensorKind first = tensors.ranged->kind(members.begin()->second);
    const bool whole = members.rbegin()->first == static_cast<std::int64_t>(members.size()) - 1 &&
                       std::all_of(members.begin(), members.end(), [&](const auto& member) {
                         const TensorKind kind = tensors.ranged->kind(member.second);
                         return kind.shape == first.shape && kind.type == first.type;
                       });
    if (!whole || kinds.contains(stack)) {
      faults.push_back(stack);
      continue;
    }
    Shape shape = turned(first.shape);
    shape.insert(shape.begin(), static_cast<std::int64_t>(members.size()));
    kinds[stack] = {std::move(shape), first.type};
  }
  KF_CHECK(faults.empty(), Code::checkpoint, "{} holds experts that make no stack: one is missing, has another shape, or is there twice{}",
           path, list_names("stacks", faults));
  return by_kinds(std::move(kinds), [get = tensors.get, stacks](const std::string& name) {
    const auto found = stacks.find(name);
    if (found == stacks.end()) {
      return get(name);
    }
    std::vector<at::Tensor> members;
    for (const auto& [expert, member] : found->second) {
      members.push_back(turned(get(member)));
    }
    return at::stack(members);
  });
}

NamedTensors each(const NamedTensors& tensors) {
  std::map<std::string, TensorKind> kinds;
  std::map<std::string, std::pair<std::string, std::int64_t>> members;  // stack and expert, by the new name
  for (const std::string& name : tensors.names) {
    const TensorKind kind = tensors.ranged->kind(name);
    const auto stack = stack_of(name, kind.shape.size());
    for (std::int64_t expert = 0; stack && expert < kind.shape[0]; ++expert) {
      const std::string member = stack->first + std::to_string(expert) + stack->second;
      kinds[member] = {turned(Shape(kind.shape.begin() + 1, kind.shape.end())), kind.type};
      members[member] = {name, expert};
    }
    if (!stack) {
      kinds[name] = kind;
    }
  }
  return by_kinds(std::move(kinds), [all = tensors, members](const std::string& name) {
    const auto found = members.find(name);
    if (found == members.end()) {
      return all.get(name);
    }
    const auto& [stack, expert] = found->second;
    const TensorKind kind = all.ranged->kind(stack);
    Range range = Range::whole(kind.shape);
    range.begin[0] = expert;
    range.size[0] = 1;
    const at::Tensor one = at::empty(range.size, at::TensorOptions().dtype(kind.type));
    all.ranged->read({stack, kind.shape, range, one});
    return turned(one.select(0, 0)).contiguous();
  });
}

}  // namespace

NamedTensors with_experts(const NamedTensors& tensors, ExpertForm form, const fs::path& path) {
  return form == ExpertForm::packed ? packed(tensors, path) : each(tensors);
}

}  // namespace kf
