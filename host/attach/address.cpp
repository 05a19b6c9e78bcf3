#include "attach/address.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "core/error.h"

namespace kf::attach {

Address::Address(const fs::path& folder) : folder_(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {
  KF_CHECK(folder_.get() >= 0, Code::other, "cannot open the folder {}: {}", folder, std::generic_category().message(errno));
  address_.sun_family = AF_UNIX;
  std::string path = (folder / kSocket).string();
  if (path.size() >= sizeof(address_.sun_path)) {
    path = format("/proc/self/fd/{}/{}", folder_.get(), kSocket);
  }
  std::memcpy(address_.sun_path, path.c_str(), path.size() + 1);
}

int Address::bind(int socket) const { return ::bind(socket, generic(), sizeof(address_)); }
int Address::connect(int socket) const { return ::connect(socket, generic(), sizeof(address_)); }

Peer peer_of(int socket) {
  ucred who{};
  socklen_t size = sizeof(who);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) {
    return {};
  }
  return {static_cast<std::int64_t>(who.uid), static_cast<std::int64_t>(who.pid)};
}

}  // namespace kf::attach
