// Which cores a process may compute on: files of /proc and /sys as machines, containers and batch systems have them.

#include "core/cores.h"

#include <catch2/catch.hpp>

#include <set>
#include <vector>

#include "support/temp_dir.h"

using namespace kf;
using kf::test::TempDir;

namespace {

using Sets = std::vector<std::vector<int>>;

/// Four cores of two logical processors each: 0 and 4, 1 and 5, ...
void make_siblings(const TempDir& root, const std::string& file = "core_cpus_list") {
  for (int i = 0; i < 8; ++i) {
    root.write("sys/devices/system/cpu/cpu" + std::to_string(i) + "/topology/" + file,
               std::to_string(i % 4) + "," + std::to_string(i % 4 + 4) + "\n");
  }
}

const std::vector<int> kAll{0, 1, 2, 3, 4, 5, 6, 7};

}  // namespace

TEST_CASE("cores: siblings are one core, by either name of their file", "[cores]") {
  const TempDir root;
  make_siblings(root, GENERATE("core_cpus_list", "thread_siblings_list"));
  const Cores cores = cores_of(kAll, root.path());
  CHECK(cores.physical == Sets{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
  CHECK(cores.logical() == 8);
  CHECK(cores.threads() == 4);
  CHECK(cores.quota == 0);
}

TEST_CASE("cores: those of the affinity mask alone count, and half a core is one", "[cores]") {
  const TempDir root;
  make_siblings(root);
  const Cores cores = cores_of({1, 2, 6}, root.path());
  CHECK(cores.physical == Sets{{1}, {2, 6}});
  CHECK(cores.threads() == 2);
}

TEST_CASE("cores: where nothing tells of siblings each processor is a core", "[cores]") {
  const TempDir root;
  CHECK(cores_of({0, 3}, root.path()).physical == Sets{{0}, {3}});
  CHECK(cores_of({}, root.path()).threads() == 1);
}

TEST_CASE("cores: there are no more threads than control groups give time for, of version 2, at any level", "[cores]") {
  const TempDir root;
  make_siblings(root);
  root.write("proc/self/cgroup", "0::/jobs/one\n");
  root.write("sys/fs/cgroup/jobs/one/cpu.max", "max 100000\n");
  root.write("sys/fs/cgroup/jobs/cpu.max", "250000 100000\n");
  CHECK(cores_of(kAll, root.path()).quota == 2.5);
  CHECK(cores_of(kAll, root.path()).threads() == 3);
  root.write("sys/fs/cgroup/jobs/one/cpu.max", "20000 100000\n");
  CHECK(cores_of(kAll, root.path()).threads() == 1);
  root.write("sys/fs/cgroup/jobs/one/cpu.max", "6400000 100000\n");
  root.write("sys/fs/cgroup/jobs/cpu.max", "max 100000\n");
  CHECK(cores_of(kAll, root.path()).threads() == 4);
}

TEST_CASE("cores: control groups of version 1, whose controllers may go together", "[cores]") {
  const TempDir root;
  make_siblings(root);
  root.write("proc/self/cgroup", "9:memory:/a\n7:cpu,cpuacct:/a\n");
  root.write("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "-1\n");
  root.write("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
  CHECK(cores_of(kAll, root.path()).quota == 0);
  root.write("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "200000\n");
  CHECK(cores_of(kAll, root.path()).quota == 2);
  root.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n");  // the link that most systems have
  root.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  CHECK(cores_of(kAll, root.path()).threads() == 1);
}

TEST_CASE("cores: sets of processors are written as the kernel does, and read back", "[cores]") {
  CHECK(processor_list({0, 1, 2, 3, 8, 10, 11}) == "0-3,8,10-11");
  CHECK(processor_list({}).empty());
  CHECK(processors_in("0-3,8,10-11") == std::vector<int>{0, 1, 2, 3, 8, 10, 11});
  for (const char* const wrong : {"", "x", "1-", "3-1", "1,,2", "1;2", "-1", "0-99999999", "99999999999999999999"}) {
    CAPTURE(wrong);
    CHECK(processors_in(wrong).empty());
  }
}

TEST_CASE("cores: processes share cores out, none of them twice while there are enough", "[cores]") {
  for (std::size_t cores = 1; cores <= 9; ++cores) {
    Sets all;
    for (std::size_t i = 0; i < cores; ++i) {
      all.push_back({static_cast<int>(i)});
    }
    for (std::size_t processes = 1; processes <= 12; ++processes) {
      CAPTURE(cores, processes);
      std::set<int> seen;
      std::size_t count = 0;
      for (std::size_t place = 0; place < processes; ++place) {
        const Sets own = share_of_cores(all, place, processes);
        CHECK(own.size() >= std::max<std::size_t>(1, cores / processes));
        for (const std::vector<int>& core : own) {
          seen.insert(core.front());
          ++count;
        }
      }
      CHECK(seen.size() == cores);
      CHECK(count == std::max(cores, processes));
    }
  }
}

TEST_CASE("cores: this machine has some", "[cores]") {
  const Cores cores = own_cores();
  CHECK(cores.threads() >= 1);
  CHECK(cores.threads() <= cores.logical());
  CHECK(cores.logical() == static_cast<int>(allowed_processors().size()));
}
