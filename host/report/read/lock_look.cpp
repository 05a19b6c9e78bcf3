#include "report/read/lock_look.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <cstdint>

#include "config/tree/json.h"
#include "core/descriptor.h"
#include "core/error.h"
#include "core/plain_file.h"
#include "sweep/worker.h"

namespace kf::report {
namespace {

constexpr std::uint64_t kMostOwner = 4096;

/// By .lock.owner, where the disk has no locks.
Lock owned(const fs::path& file) {
  if (!path_exists(file)) {
    return Lock::free;
  }
  try {
    const sweep::Worker owner = sweep::Worker::from_node(config::parse_json(read_regular_file(file, kMostOwner), file.string()));
    if (!owner.on_this_machine()) {
      return Lock::unseen;
    }
    return owner.process.alive() ? Lock::held : Lock::free;
  } catch (const Error&) {
    return Lock::unseen;
  }
}

}  // namespace

Lock lock_of(const fs::path& folder) {
  const fs::path file = folder / ".lock";
  const Descriptor lock(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (lock.get() < 0) {
    return Lock::free;
  }
  if (::flock(lock.get(), LOCK_SH | LOCK_NB) == 0) {  // given back with the descriptor
    return Lock::free;
  }
  return errno == EWOULDBLOCK ? Lock::held : owned(file.string() + ".owner");
}

}  // namespace kf::report
