// Processor, threads, memory, limits.

#include <sys/resource.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include "app/doctor/looks.h"
#include "core/cores.h"
#include "core/machine_memory.h"
#include "core/processor.h"
#include "core/text.h"
#include "core/visible_gpus.h"

namespace kf {
namespace {

using State = Finding::State;

constexpr double kGigabyte = 1e9;

std::set<std::string> flags_of(const fs::path& cpuinfo) {
  std::ifstream in(cpuinfo);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("flags")) {
      std::istringstream words(line.substr(line.find(':') + 1));
      return {std::istream_iterator<std::string>(words), {}};
    }
  }
  return {};
}

}  // namespace

Finding look_at_processor(const fs::path& cpuinfo) {
  Finding out{"processor", State::fine, processor_name()};
  const std::set<std::string> flags = flags_of(cpuinfo);
  std::vector<std::string> known;
  for (const char* flag : {"avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16"}) {
    if (flags.count(flag) > 0) {
      known.emplace_back(flag);
    }
  }
  out.says += known.empty() ? "" : ": " + join(known, ", ");
  if (flags.count("avx2") == 0) {
    out.state = State::poor;
    out.says += ", no avx2";
    out.remedy = "products of matrices are many times slower without AVX2; a virtual machine may hide it: give it the host's processor";
  } else if (flags.count("avx512_bf16") == 0 && flags.count("amx_bf16") == 0) {
    out.says += "; no products in bf16, so on this processor train.mixed_precision = \"fp32\" is the fast one";
  }
  return out;
}

Finding look_at_threads() {
  const Cores cores = own_cores();
  const auto have = static_cast<int>(cores.physical.size());
  const char* const set = std::getenv("OMP_NUM_THREADS");
  const int threads = set != nullptr ? std::atoi(set) : 0;
  Finding out{"cores", State::fine, format("{} for this process", have)};
  if (cores.logical() > have) {
    out.says += format(" ({} processors)", cores.logical());
  }
  if (cores.quota > 0 && cores.quota < have) {
    out.says += format(", of which its control group gives the time of {}", fixed(cores.quota, 1));
  }
  out.says += set != nullptr ? format(", OMP_NUM_THREADS = {}", set) : format(", {} threads compute", cores.threads());
  if (threads > cores.threads()) {
    out.state = State::poor;
    out.remedy =
        format("more threads than cores wait for each other: unset OMP_NUM_THREADS, which takes {}, or set it to no more", cores.threads());
  }
  return out;
}

Finding look_at_memory() {
  const FreeMemory free = free_memory();
  if (free.limit.empty()) {
    return {"memory", State::poor, "how much is free cannot be found out", "mount /proc: jobs are not checked against what is free"};
  }
  Finding out{"memory", State::fine, format("{} for this process, by {}", human_bytes(free.bytes), free.limit)};
  if (free.bytes < kGigabyte) {
    out.state = State::bad;
    out.remedy = "torch alone takes about 0.6 GB: free some, or raise that limit";
  } else if (free.bytes < 4 * kGigabyte) {
    out.state = State::poor;
    out.remedy = "small jobs alone fit; `kf-host config check JOB` says what a job takes";
  }
  return out;
}

Finding look_at_limits() {
  constexpr rlim_t kFiles = 1024;
  struct rlimit files {};
  struct rlimit core {};
  ::getrlimit(RLIMIT_NOFILE, &files);
  ::getrlimit(RLIMIT_CORE, &core);
  const auto text = [](rlim_t limit) { return limit == RLIM_INFINITY ? std::string("no limit") : to_text(limit); };
  Finding out{"limits", State::fine, format("open files {} (at most {})", text(files.rlim_cur), text(files.rlim_max))};
  if (files.rlim_cur < kFiles) {
    out.state = State::poor;
    out.remedy = "data of many files and many ranks need more: ulimit -n 4096";
  }
  return out;
}

Finding look_at_shared_memory() {
  struct statvfs about {};
  if (::statvfs("/dev/shm", &about) != 0) {
    return {"shared memory", State::poor, "there is no /dev/shm", "ranks on GPUs of one machine need it: mount a tmpfs there"};
  }
  const double bytes = static_cast<double>(about.f_bavail) * static_cast<double>(about.f_frsize);
  Finding out{"shared memory", State::fine, format("{} free in /dev/shm", human_bytes(bytes))};
  if (visible_gpus().size() > 1 && bytes < kGigabyte) {
    out.state = State::poor;
    out.remedy = "NCCL needs more between several GPUs: docker run --shm-size=2g, or --ipc=host";
  }
  return out;
}

}  // namespace kf
