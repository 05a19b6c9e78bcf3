#include "run/git_state.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <utility>
#include <vector>

#include "core/child.h"
#include "core/descriptor.h"
#include "core/error.h"

namespace kf {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kPatience{5};

/// What `git` prints, without the newline at its end; nothing where it fails.
std::optional<std::string> git(const fs::path& folder, const std::vector<std::string>& words) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return std::nullopt;
  }
  const Descriptor from(ends[0]);
  Descriptor to(ends[1]);
  // A repository can name programs that git starts to watch its files: what somebody else wrote there is not run for a look.
  std::vector<std::string> argv{"/usr/bin/env", "git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-C", folder.string()};
  argv.insert(argv.end(), words.begin(), words.end());
  Child child(argv, {{"LC_ALL", "C"}}, {{}, to.get()});
  to = Descriptor();
  std::string out;
  const Clock::time_point end = Clock::now() + kPatience;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd ready{from.get(), POLLIN, 0};
    std::array<char, 4096> buffer{};
    if (left <= 0 || ::poll(&ready, 1, static_cast<int>(left)) <= 0) {
      return std::nullopt;  // the child is ended with this scope
    }
    const ssize_t got = ::read(from.get(), buffer.data(), buffer.size());
    if (got <= 0) {
      break;
    }
    out.append(buffer.data(), static_cast<std::size_t>(got));
  }
  std::optional<Child::Ending> ending = child.poll();
  for (; !ending && Clock::now() < end; ending = child.poll()) {
    ::usleep(500);  // it has closed its output
  }
  if (!ending || ending->signal != 0 || ending->status != 0) {
    return std::nullopt;
  }
  out.resize(out.ends_with('\n') ? out.size() - 1 : out.size());
  return out;
}

}  // namespace

std::optional<GitState> git_state(const fs::path& folder) {
  try {
    const std::optional<std::string> commit = git(folder, {"rev-parse", "--verify", "--quiet", "HEAD"});
    const bool is_hash =
        commit && !commit->empty() && std::all_of(commit->begin(), commit->end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
    if (!is_hash) {
      return std::nullopt;
    }
    const std::optional<std::string> changes = git(folder, {"status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all"});
    return changes ? std::optional(GitState{*commit, !changes->empty()}) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace kf
