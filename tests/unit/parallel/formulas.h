#pragma once
// What every call of a group should give, by loops over numbers; any kind of group is held against it.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace kf {
class Group;
}

namespace kf::test {

/// Numbers that differ by rank and place, whose sum depends on the order of adding, in a tensor of `type`.
at::Tensor numbers(const std::vector<std::int64_t>& shape, at::ScalarType type, std::int64_t rank, std::int64_t salt = 0);

/// Throws std::runtime_error unless every call gives the formula's bits, for all types (or two of them), empty tensors and uneven parts.
void check_calls(Group& group);
void check_some_calls(Group& group);

}  // namespace kf::test
