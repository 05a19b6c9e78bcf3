#pragma once
// One member of a JSON file changed, and all else of it left to the byte: numbers of any size, repeated names, the order.

#include <optional>
#include <string>
#include <string_view>

namespace kf::json {

/// The text of a member's value in the outermost object of `text`, which is valid JSON; nothing where it has no such member.
std::optional<std::string_view> member(std::string_view text, std::string_view name);

/// The object ("" for an empty one) with the member set to `value`, JSON as well.
std::string with_member(const std::string& text, std::string_view name, const std::string& value);

}  // namespace kf::json
