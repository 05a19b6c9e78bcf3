#pragma once
// The store at HOST:PORT in which processes find each other.

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <cstdint>
#include <string>

namespace kf {

struct TcpPlace {
  std::string host;
  std::uint16_t port = 0;
};

/// Throws Code::config for what is no HOST:PORT.
TcpPlace tcp_place_of(const std::string& where);

/// A machine that starts may get its name a little later than those who ask for it.
inline constexpr std::chrono::seconds kNamePatience{10};

/// Asks for the host's name until it is known. Throws Code::config where it is not within `patience`; the message begins with `who`.
void find_host(const std::string& who, const std::string& where, std::chrono::milliseconds patience);

struct TcpStoreOptions {
  std::int64_t rank = 0;   ///< messages name it
  std::int64_t world = 0;  ///< 0: not known
  bool keeps = false;      ///< listens at the port of this machine
  const char* keeper = "rank 0";
  std::chrono::milliseconds timeout{};
};

/// Throws Code::config for a host whose name this machine does not know, Code::communication where nobody answers in time, what answers is
/// no rendezvous or, for who keeps it, the port is taken; each says who was to do what. Torch's own words on the way are not shown.
c10::intrusive_ptr<c10d::Store> open_tcp_store(const std::string& where, const TcpStoreOptions& options);

}  // namespace kf
