#pragma once
// The names of the kinds of parts, from kinds.def.

#include <array>
#include <string_view>

namespace kf {

struct PartKind {
  std::string_view name;       // "optimizer"
  std::string_view chosen_by;  // "optimizer.name": the key that names a part of this kind
};

/// Every kind, in the order of kinds.def.
inline constexpr auto kPartKinds = std::to_array<PartKind>({
#define KIND(name, product, more, chosen_by) {#name, chosen_by},
#include "registry/kinds.def"
});

}  // namespace kf
