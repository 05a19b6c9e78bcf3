#include "parallel/tcp_store.h"

#include <netdb.h>

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>
#include <thread>

#include "core/error.h"
#include "core/text.h"
#include "parallel/own_address.h"
#include "parallel/quiet_torch.h"

namespace kf {
namespace {

using std::chrono::milliseconds;

struct TcpPlace {
  std::string host;
  std::uint16_t port = 0;
};

TcpPlace tcp_place_of(const std::string& where, const TcpStoreOptions& options) {
  const std::size_t colon = where.rfind(':');
  TcpPlace place{host_of(where), 0};
  const char* const end = where.data() + where.size();
  const bool right =
      colon != std::string::npos && colon > 0 && std::from_chars(where.data() + colon + 1, end, place.port).ptr == end && place.port != 0;
  KF_CHECK(right, Code::config, "'{}' ({}) is neither HOST:PORT nor file:PATH; a port is 1 to 65535", where, options.option);
  return place;
}

std::string unknown_host_text(const std::string& where, const TcpPlace& place, const TcpStoreOptions& options, int error) {
  return format(
      "{} cannot find {} ({}): this machine does not know the host '{}' ({}); write the name or the address of the machine of {} "
      "as all machines know it",
      options.who, where, options.option, place.host, ::gai_strerror(error), options.keeper);
}

// What torch says last tells a port that nobody listens at from one where something else does.
std::string unreachable_text(const std::string& where, const TcpPlace& place, const TcpStoreOptions& options, const char* said) {
  const bool stranger = std::strstr(said, "Ping failed") != nullptr;
  const std::string what = stranger ? "what answers there is something else" : "nobody answers there";
  const std::string time = to_text(static_cast<double>(options.timeout.count()) / 1000);
  if (options.keeps) {
    return format(
        "{} listens at port {} of this machine, and cannot reach it as {} within {} s: {}; is '{}' this machine? {} HOST:PORT is "
        "the machine of {} and a free port there",
        options.who, place.port, where, time, what, place.host, options.option, options.keeper);
  }
  return format(
      "{} cannot reach {} (kept by {}) within {} s: {}; is this the machine of {}, has that been started, and may port {} be "
      "reached from here? {} HOST:PORT names both for all",
      options.who, where, options.keeper, time, what, options.keeper, place.port, options.option);
}

}  // namespace

void find_host(const std::string& where, const TcpStoreOptions& options, milliseconds patience) {
  const TcpPlace place = tcp_place_of(where, options);
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    const int error = ::getaddrinfo(place.host.c_str(), nullptr, &hints, &found);
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(found, &::freeaddrinfo);
    if (error == 0) {
      return;
    }
    KF_CHECK(std::chrono::steady_clock::now() < deadline, Code::config, "{}", unknown_host_text(where, place, options, error));
    std::this_thread::sleep_for(std::min(patience, milliseconds(500)));
  }
}

c10::intrusive_ptr<c10d::Store> open_tcp_store(const std::string& where, const TcpStoreOptions& options) {
  const TcpPlace place = tcp_place_of(where, options);
  find_host(where, options, std::min<milliseconds>(options.timeout, kNamePatience));
  c10d::TCPStoreOptions torch_options;
  torch_options.port = place.port;
  torch_options.isServer = options.keeps;
  if (options.world > 0) {
    torch_options.numWorkers = static_cast<std::size_t>(options.world);
  }
  torch_options.waitWorkers = false;  // Room::wait_for_all names who is missing
  torch_options.timeout = options.timeout;
  try {
    const QuietTorch quiet(QuietTorch::kFatal);
    return c10::make_intrusive<c10d::TCPStore>(place.host, torch_options);
  } catch (const std::exception& e) {
    const bool taken = options.keeps && std::strstr(e.what(), "EADDRINUSE") != nullptr;
    KF_CHECK(!taken, Code::communication,
             "port {} of this machine is in use, so {} cannot keep {}; another run may be there, or what is left of one: end it, or choose "
             "another port with {} HOST:PORT",
             place.port, options.who, where, options.option);
    fail(Code::communication, "{}", unreachable_text(where, place, options, e.what()));
  }
}

}  // namespace kf
