#pragma once
// What must not be shown.

#include <string>
#include <string_view>

namespace kf {

/// The text with every URL in it without its user and password: "http://user:secret@host/x" as "http://host/x".
std::string without_credentials(std::string_view text);
/// A URL for messages: also without its query, which may be a signature ("https://host/file?X-Amz-Signature=...").
std::string shown_url(std::string_view url);

}  // namespace kf
