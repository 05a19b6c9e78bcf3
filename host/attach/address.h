#pragma once
// Where the socket of a run lies: attach.sock in its folder, however long the folder's name is.

#include <sys/socket.h>
#include <sys/un.h>

#include <cstdint>

#include "core/descriptor.h"
#include "core/fs.h"

namespace kf::attach {

inline constexpr const char* kSocket = "attach.sock";

/// The system's addresses have room for 107 bytes; longer names go through the open folder, /proc/self/fd/N/attach.sock.
class Address {
 public:
  /// Throws Code::other where the folder cannot be opened.
  explicit Address(const fs::path& folder);

  int bind(int socket) const;
  int connect(int socket) const;
  /// The name that the system knows it by, while this exists.
  const char* path() const { return address_.sun_path; }

 private:
  const sockaddr* generic() const { return reinterpret_cast<const sockaddr*>(&address_); }

  Descriptor folder_;
  sockaddr_un address_{};
};

/// Who is at the other end of a socket: -1 where the system does not say.
struct Peer {
  std::int64_t user = -1;
  std::int64_t process = -1;
};
Peer peer_of(int socket);

}  // namespace kf::attach
