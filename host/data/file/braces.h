#pragma once
// Brace lists and ranges of file names, as a shell expands them.

#include <string>
#include <vector>

namespace kf {

/// "p-{00..12}.{a,b}" gives p-00.a, p-00.b, p-01.a, ...; nested lists too. A range counts up or down; zeros in front set its width, and
/// letters count as well ({a..f}). Braces that close nothing or hold neither list nor range stand for themselves. Throws Code::data for
/// more than a million names.
std::vector<std::string> expand_braces(const std::string& pattern);

}  // namespace kf
