#include "report/serve/guard.h"

#include <algorithm>
#include <cstddef>

namespace kf::report {

bool is_loopback_host(std::string_view host) {
  for (const std::string_view name : {"127.0.0.1", "localhost", "[::1]"}) {
    if (!host.starts_with(name)) {
      continue;
    }
    const std::string_view rest = host.substr(name.size());
    const bool digits = std::all_of(rest.begin() + (rest.empty() ? 0 : 1), rest.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (rest.empty() || (rest.front() == ':' && rest.size() > 1 && rest.size() <= 6 && digits)) {
      return true;
    }
  }
  return false;
}

bool same_secret(std::string_view given, std::string_view secret) {
  unsigned difference = given.size() == secret.size() ? 0 : 1;
  for (std::size_t i = 0; i < secret.size(); ++i) {
    difference |= static_cast<unsigned char>(secret[i]) ^ static_cast<unsigned char>(i < given.size() ? given[i] : 0);
  }
  return difference == 0;
}

}  // namespace kf::report
