#pragma once
// The store at HOST:PORT in which processes find each other.

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <cstdint>
#include <string>

namespace kf {

struct TcpStoreOptions {
  std::string who = {};           ///< this process, for messages, and
  const char* keeper = "rank 0";  ///< who keeps the store, and
  const char* option = "--rdzv";  ///< what names the place
  std::int64_t world = 0;         ///< of ranks; 0: not known
  bool keeps = false;             ///< listens at the port of this machine
  std::chrono::milliseconds timeout{};
};

/// A machine that starts may get its name a little later than those who ask for it.
inline constexpr std::chrono::seconds kNamePatience{10};

/// Asks for the host's name until it is known. Throws Code::config where it is not within `patience`, and for what is no HOST:PORT.
void find_host(const std::string& where, const TcpStoreOptions& options, std::chrono::milliseconds patience);

/// Throws Code::config for a host whose name this machine does not know, Code::communication where nobody answers in time, what answers is
/// something else or, for who keeps it, the port is taken; each says who was to do what. Torch's own words on the way are not shown.
c10::intrusive_ptr<c10d::Store> open_tcp_store(const std::string& where, const TcpStoreOptions& options);

}  // namespace kf
