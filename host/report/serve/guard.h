#pragma once
// Whether a request may be answered.

#include <string_view>

namespace kf::report {

/// Whether a Host header names this machine's loopback, with any port (it may be forwarded by ssh). Another name leads a browser here by a
/// DNS entry of somebody's own (DNS rebinding).
bool is_loopback_host(std::string_view host);

/// Whether the two are equal, in a time that says nothing of where they differ.
bool same_secret(std::string_view given, std::string_view secret);

}  // namespace kf::report
