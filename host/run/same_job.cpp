#include "run/same_job.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "config/show/emit.h"
#include "core/error.h"
#include "core/text.h"
#include "parallel/group.h"

namespace kf {
namespace {

/// "[optimizer] lr = 0.001": line `at`, with the table that it stands in.
std::string setting(const std::vector<std::string>& lines, std::size_t at) {
  if (at >= lines.size()) {
    return "(nothing more)";
  }
  for (std::size_t i = at; i-- > 0;) {
    if (lines[i].starts_with("[")) {
      return lines[i] + " " + lines[at];
    }
  }
  return lines[at];
}

}  // namespace

void check_same_job(const config::Config& config, Group& all) {
  if (all.size() == 1) {
    return;
  }
  const std::vector<std::string> jobs = all.tell(config::to_toml(config));
  const auto other = std::find_if(jobs.begin(), jobs.end(), [&](const std::string& job) { return job != jobs.front(); });
  if (other == jobs.end()) {
    return;
  }
  const std::vector<std::string> first = split(jobs.front(), '\n'), second = split(*other, '\n');
  const auto differs = std::mismatch(first.begin(), first.end(), second.begin(), second.end()).first;
  const auto at = static_cast<std::size_t>(differs - first.begin());
  fail(Code::config,
       "rank {} has another job than rank 0: `{}`, and rank 0 has `{}`. A script runs on every rank and must give the same settings on all "
       "of "
       "them; take kf.dist.rank, clocks and random numbers out of what it returns",
       other - jobs.begin(), setting(second, at), setting(first, at));
}

}  // namespace kf
