#include "core/network_disk.h"

#include <sys/vfs.h>

namespace kf {
namespace {

struct Kind {
  unsigned long magic;  // as statfs has it (linux/magic.h, and of systems outside of the kernel their own)
  const char* name;
};
constexpr Kind kKinds[] = {
    {0x6969, "NFS"},       {0xff534d42, "SMB"},    {0xfe534d42, "SMB"},  {0x517b, "SMB"},     {0x0bd00bd0, "Lustre"},
    {0x47504653, "GPFS"},  {0x19830326, "BeeGFS"}, {0x00c36400, "Ceph"}, {0x5346414f, "AFS"}, {0x01021997, "9p"},
    {0xaad7aaea, "PanFS"}, {0x7461636f, "OCFS2"},  {0x01161970, "GFS2"},
};

}  // namespace

std::string network_disk(const fs::path& path) {
  std::error_code ignored;
  fs::path at = fs::absolute(path, ignored);
  struct statfs found {};
  while (::statfs(at.c_str(), &found) != 0) {
    if (!at.has_parent_path() || at == at.parent_path()) {
      return "";
    }
    at = at.parent_path();
  }
  for (const Kind& kind : kKinds) {
    if (static_cast<unsigned long>(found.f_type) == kind.magic) {
      return kind.name;
    }
  }
  return "";
}

}  // namespace kf
