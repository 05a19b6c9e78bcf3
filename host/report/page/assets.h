#pragma once
// Files of page/web, part of the program (cmake/embed_files.cmake).

#include <string_view>

namespace kf::report::assets {

extern const std::string_view kHtml;    // page.html
extern const std::string_view kStyle;   // page.css
extern const std::string_view kScript;  // the .js files, one behind the other, in a function of their own

}  // namespace kf::report::assets
