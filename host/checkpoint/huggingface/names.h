#pragma once
// Names with numbers in them: "model.layers.{l}.mlp.experts.{e}.w1.weight".

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kf::huggingface {

/// The numbers of `name` by the order of the braces in `pattern`, or nothing where it does not match.
std::optional<std::vector<std::string>> match(std::string_view pattern, std::string_view name);
/// The pattern with its braces replaced, in their order.
std::string filled(std::string_view pattern, const std::vector<std::string>& numbers);

}  // namespace kf::huggingface
