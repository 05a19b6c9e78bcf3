#include "run/same_job.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "build_info.h"
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

/// The program, then a line for each file of code: its digests and its name.
std::string program_text(const std::string& program, const std::vector<CodeFile>& code) {
  std::string out = program;
  for (const CodeFile& file : code) {
    out += format("\n{} {} {}", file.functions, file.rest, file.name);
  }
  return out;
}

/// A file that `mine` and `theirs` have with other digests; "" for none.
std::string differing_file(const std::vector<std::string>& mine, const std::vector<std::string>& theirs) {
  const auto name = [](const std::string& line) { return line.substr(line.find(' ', line.find(' ') + 1) + 1); };
  for (std::size_t i = 1; i < theirs.size(); ++i) {
    for (std::size_t j = 1; j < mine.size(); ++j) {
      if (name(mine[j]) == name(theirs[i]) && mine[j] != theirs[i]) {
        return name(theirs[i]);
      }
    }
  }
  return "";
}

}  // namespace

std::string running_program() { return format("kf-host {}, git {}, torch {}", build::kVersion, build::kGit, build::kTorch); }

void check_same_program(const std::string& program, const std::vector<CodeFile>& code, Group& all) {
  if (all.size() == 1) {
    return;
  }
  const std::vector<std::string> programs = all.tell(program_text(program, code));
  const std::vector<std::string> first = split(programs.front(), '\n');
  for (std::size_t rank = 1; rank < programs.size(); ++rank) {
    const std::vector<std::string> other = split(programs[rank], '\n');
    KF_CHECK(other.front() == first.front(), Code::communication,
             "rank {} is another program than rank 0: {}, and rank 0 is {}; start the same build on all machines", rank, other.front(),
             first.front());
    const std::string file = differing_file(first, other);
    KF_CHECK(file.empty(), Code::communication, "rank {} has read another {} than rank 0: all ranks must run the same code", rank, file);
  }
}

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
