#pragma once

#include <string>
#include <string_view>

namespace kf {

/// `text` between tags, or between the double quotes of an attribute, of HTML, XML and SVG.
std::string markup_escaped(std::string_view text);

}  // namespace kf
