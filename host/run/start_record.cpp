#include "run/start_record.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <string>
#include <system_error>

#include "core/digest.h"
#include "core/processor.h"
#include "run/git_state.h"
#include "run/invocation.h"

namespace kf {
namespace {

using config::Node;
using config::Table;

std::string utf8(const std::string& text) { return is_utf8(text) ? text : std::string("(not UTF-8)"); }

std::string digest_of(const std::string& text) {
  Digest digest;
  digest.add(text);
  return digest.hex();
}

void add_machine(Table& out) {
  utsname system{};
  ::uname(&system);
  out["host"] = Node(std::string(system.nodename));
  out["system"] = Node(format("{} {} {}", system.sysname, system.release, system.machine));
  out["processor"] = Node(processor_name());
  out["instructions"] = Node(std::string(at::get_cpu_capability()));
  out["cores"] = Node(static_cast<std::int64_t>(::sysconf(_SC_NPROCESSORS_ONLN)));
  out["memory"] = Node(static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::int64_t>(::sysconf(_SC_PAGESIZE)));
  out["threads"] = Node(static_cast<std::int64_t>(at::get_num_threads()));
}

/// As git_state, which starts programs. Runs of one process that begin within seconds, as trials may, ask once.
std::optional<GitState> recent_git_state(const fs::path& folder) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds kRecent{10};
  static fs::path known;
  static std::optional<GitState> state;
  static Clock::time_point asked;
  if (known != folder || Clock::now() - asked > kRecent) {
    state = git_state(folder);
    known = folder;
    asked = Clock::now();
  }
  return state;
}

/// Of the folder in which the job lies.
void add_git(Table& out, const fs::path& job) {
  std::error_code ignored;
  const fs::path folder = fs::absolute(job, ignored).parent_path();
  if (const std::optional<GitState> state = recent_git_state(folder)) {
    Table git;
    git["commit"] = Node(state->commit);
    git["dirty"] = Node(state->dirty);
    out["job_git"] = Node(std::move(git));
  }
}

}  // namespace

Table start_record(const RunStart& start) {
  Table out;
  out["time"] = Node(utc_now());
  out["command"] = Node(utf8(shell_line(invocation())));
  std::error_code ignored;
  out["folder"] = Node(utf8(fs::current_path(ignored).string()));
  const Node versions = program_versions();
  for (const auto& [key, value] : *versions.table()) {
    out[key] = value;
  }
  add_git(out, start.job);
  add_machine(out);
  out["device"] = Node(start.device);
  out["ranks"] = Node(start.ranks);
  if (start.call > 0) {
    out["call"] = Node(start.call);
  }
  out["data"] = Node(digest_of(start.data));
  out["pid"] = Node(static_cast<std::int64_t>(::getpid()));
  out["step"] = Node(start.step);
  if (const std::string watch = watch_token(); !watch.empty()) {
    out["watch"] = Node(watch);
  }
  return out;
}

}  // namespace kf
