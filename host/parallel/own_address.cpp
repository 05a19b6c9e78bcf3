#include "parallel/own_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "core/descriptor.h"
#include "core/error.h"

namespace kf {
namespace {

std::string text_of(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address->sa_family == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text.data(), text.size());
  } else if (address->sa_family == AF_INET6) {
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, text.data(), text.size());
  }
  return text.data();
}

bool leads_out(const std::string& address) {
  return !address.empty() && !address.starts_with("127.") && address != "::1" && !address.starts_with("fe80");
}

/// Of the interface `name`, or of the first that is up and leads out; IPv4 before IPv6.
std::string address_of_interface(std::string_view name) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) {
    return "";
  }
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owned(list, &::freeifaddrs);
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
      if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != family || (one->ifa_flags & IFF_UP) == 0) {
        continue;
      }
      std::string address = text_of(one->ifa_addr);
      if (name.empty() ? leads_out(address) : name == one->ifa_name) {
        return address;
      }
    }
  }
  return "";
}

/// The kernel chooses the interface when a socket for datagrams is connected; nothing is sent.
std::string address_towards(const std::string& host) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_DGRAM;
  if (::getaddrinfo(host.c_str(), "9", &hints, &found) != 0) {
    return "";
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(found, &::freeaddrinfo);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    const Descriptor socket(::socket(one->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    if (socket.get() >= 0 && ::connect(socket.get(), one->ai_addr, one->ai_addrlen) == 0 &&
        ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &size) == 0) {
      return text_of(reinterpret_cast<const sockaddr*>(&own));
    }
  }
  return "";
}

}  // namespace

std::string own_address(const std::string& host) {
  const char* const name = std::getenv("GLOO_SOCKET_IFNAME");
  if (name != nullptr && *name != '\0') {
    std::string address = address_of_interface(name);
    KF_CHECK(!address.empty(), Code::communication, "GLOO_SOCKET_IFNAME={}: no interface of this name is up; `ip address` lists them",
             name);
    return address;
  }
  const std::string towards = address_towards(host);
  return leads_out(towards) ? towards : address_of_interface("");
}

std::string host_of(const std::string& where) {
  const std::string host = where.substr(0, where.rfind(':'));
  return host.size() > 2 && host.front() == '[' && host.back() == ']' ? host.substr(1, host.size() - 2) : host;
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace kf
