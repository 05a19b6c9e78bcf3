#pragma once
// Under which address the other machines of a run reach this one.

#include <string>

namespace kf {

/// The address of the interface through which `host` is reached; where that is this machine itself, of the first interface that leads out.
/// GLOO_SOCKET_IFNAME names another interface. Empty where none is found.
std::string own_address(const std::string& host);

/// The HOST of "HOST:PORT": of "[::1]:29500" the address without its brackets.
std::string host_of(const std::string& where);

/// This machine's name.
std::string host_name();

}  // namespace kf
