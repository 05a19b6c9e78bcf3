// How much memory may still be taken: files of /proc and /sys as machines, containers and batch systems have them.

#include "core/machine_memory.h"

#include <catch2/catch.hpp>

#include "support/temp_dir.h"

using kf::free_memory;
using kf::FreeMemory;
using kf::test::TempDir;

namespace {

/// A machine with 8,000 kB available, and processes in the group `path`.
void make_machine(const TempDir& root, const std::string& cgroup) {
  root.write("proc/meminfo", "MemTotal:       16000 kB\nMemFree:        1000 kB\nMemAvailable:   8000 kB\n");
  root.write("proc/self/cgroup", cgroup);
}

}  // namespace

TEST_CASE("memory: without groups the machine's available memory counts", "[memory]") {
  const TempDir root;
  make_machine(root, "0::/\n");
  const FreeMemory free = free_memory(root.path());
  CHECK(free.bytes == 8000 * 1024);
  CHECK(free.limit == "the free memory of the machine");
}

TEST_CASE("memory: the tightest group above the process counts, and files that can be dropped are free", "[memory]") {
  const TempDir root;
  make_machine(root, "0::/jobs/one\n");
  root.write("sys/fs/cgroup/jobs/one/memory.max", "max\n");
  root.write("sys/fs/cgroup/jobs/one/memory.current", "100\n");
  root.write("sys/fs/cgroup/jobs/memory.max", "5000\n");
  root.write("sys/fs/cgroup/jobs/memory.current", "3000\n");
  root.write("sys/fs/cgroup/jobs/memory.stat", "anon 2500\ninactive_file 400\n");
  const FreeMemory free = free_memory(root.path());
  CHECK(free.bytes == 5000 - 3000 + 400);
  CHECK(free.limit == "the control group " + (root / "sys/fs/cgroup/jobs").string());
}

TEST_CASE("memory: control groups of version 1", "[memory]") {
  const TempDir root;
  make_machine(root, "7:cpu,cpuacct:/a\n4:memory:/a\n");
  root.write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n");  // none
  root.write("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "10\n");
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "4000\n");
  root.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "1000\n");
  CHECK(free_memory(root.path()).bytes == 3000);
}

TEST_CASE("memory: a container whose group has a path of the host takes the root of the mount", "[memory]") {
  const TempDir root;
  make_machine(root, "0::/docker/0123abcd\n");
  root.write("sys/fs/cgroup/memory.max", "2000\n");
  root.write("sys/fs/cgroup/memory.current", "500\n");
  CHECK(free_memory(root.path()).bytes == 1500);
}

TEST_CASE("memory: a group that uses more than it may leaves nothing", "[memory]") {
  const TempDir root;
  make_machine(root, "0::/\n");
  root.write("sys/fs/cgroup/memory.max", "2000\n");
  root.write("sys/fs/cgroup/memory.current", "2500\n");
  CHECK(free_memory(root.path()).bytes == 0);
}

TEST_CASE("memory: where nothing is known nothing is claimed", "[memory]") {
  const TempDir root;
  CHECK(free_memory(root.path()).limit.empty());
}

TEST_CASE("memory: this machine has some", "[memory]") { CHECK(free_memory().bytes > 1e6); }
