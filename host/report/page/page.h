#pragma once
// The page of runs: one HTML file without anything from elsewhere.

#include <string>
#include <string_view>

namespace kf::report {

/// 32 hexadecimal digits that nobody can guess. Throws Code::other.
std::string random_digits();

/// What a page may load: its own script and style, which carry `nonce`, and with `live` what its server answers.
std::string content_policy(std::string_view nonce, bool live);

/// The page with `data`, JSON as JsonWriter makes it.
std::string page_html(std::string_view title, std::string_view data, std::string_view nonce, bool live);

}  // namespace kf::report
