#include "report/read/run_list.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

#include "core/error.h"
#include "core/network_disk.h"
#include "core/plain_file.h"
#include "report/read/json_values.h"
#include "report/read/last_rows.h"
#include "report/read/lock_look.h"
#include "report/read/run_record.h"

namespace kf::report {
namespace {

constexpr std::uint64_t kMostJob = std::uint64_t{64} << 20;
constexpr std::size_t kThreads = 8, kRunsEach = 16;

bool is_there(const fs::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0;
}

/// When it was last written, in seconds since 1970; 0 where it is not there.
double written(const fs::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0
             ? static_cast<double>(status.st_mtim.tv_sec) + 1e-9 * static_cast<double>(status.st_mtim.tv_nsec)
             : 0;
}

std::string this_host() {
  utsname system{};
  ::uname(&system);
  return system.nodename;
}

/// train.max_steps of a job.toml as runs write it: to read all of thousands of them would take seconds.
std::optional<std::int64_t> steps_of_job(const fs::path& file) {
  std::string text;
  try {
    text = read_regular_file(file, kMostJob);
  } catch (const Error&) {
    return std::nullopt;
  }
  constexpr std::string_view kSection = "\n[train]\n", kKey = "\nmax_steps = ";
  const std::size_t section = ("\n" + text).find(kSection);
  const std::size_t key = section == std::string::npos ? section : text.find(kKey, section);
  if (key == std::string::npos || key > text.find("\n[", section + kSection.size() - 1)) {
    return std::nullopt;
  }
  std::int64_t steps = 0;
  const char* const begin = text.data() + key + kKey.size();
  const auto [rest, fault] = std::from_chars(begin, text.data() + text.size(), steps);
  return fault == std::errc() ? std::optional(steps) : std::nullopt;
}

RunState ended(const std::string& status) {
  if (status == "complete") {
    return RunState::finished;
  }
  return status == "failed" ? RunState::failed : RunState::stopped;
}

/// Of a run that has not said how it ended. It may have begun since `lock` was looked at.
RunState unended(const RunSummary& run, Lock lock) {
  if (lock_of(run.folder) == Lock::held) {
    return RunState::running;
  }
  const bool seen = run.host == this_host() || !network_disk(run.folder).empty();
  return lock == Lock::free && seen ? RunState::killed : RunState::away;
}

void add_record(RunSummary& run) {
  const Lock lock = lock_of(run.folder);  // first: a run says how it ended before it lets go
  const Record record = read_record(run.folder);
  run.id = record.id;
  run.name = record.name.empty() ? run.name : record.name;
  run.tags = record.tags;
  run.starts = static_cast<std::int64_t>(record.starts.size());
  if (record.starts.empty()) {
    run.state = lock == Lock::held ? RunState::running : RunState::killed;
    return;
  }
  const Start& last = record.starts.back();
  run.began = seconds_of(record.starts.front().time);
  run.host = last.host;
  run.device = last.device;
  run.step = last.steps ? last.steps : std::optional(last.step);
  if (lock == Lock::held) {
    run.state = RunState::running;
  } else {
    run.state = last.end.empty() ? unended(run, lock) : ended(last.status);
  }
  run.reason = run.state == RunState::failed ? last.error : "";
}

void add_result(RunSummary& run) {
  if (run.state != RunState::stopped) {
    return;
  }
  if (const std::optional<config::Table> result = read_result(run.folder)) {
    run.reason = text_at(*result, "reason");
  }
}

void add_rows(RunSummary& run) {
  const LastRows rows = last_rows(run.folder / "metrics.jsonl");
  run.loss = rows.loss;
  run.tokens = rows.tokens;
  run.tokens_per_sec = rows.tokens_per_sec;
  run.eval_loss = rows.eval_loss;
  if (rows.step) {
    run.step = std::max(*rows.step, run.step.value_or(0));
  }
}

class Search {
 public:
  explicit Search(int deepest) : deepest_(deepest) {}

  void look(const fs::path& folder, int depth) {
    if (is_run(folder)) {
      found.push_back(folder);
      return;
    }
    std::error_code error;
    fs::directory_iterator entry(folder, error);
    for (const fs::directory_iterator end; !error && entry != end; entry.increment(error)) {
      std::error_code ignored;
      const bool plain = entry->is_directory(ignored) && !entry->is_symlink(ignored);
      if (depth < deepest_ && plain && entry->path().filename().native().front() != '.') {
        look(entry->path(), depth + 1);
      }
    }
    if (error) {
      unreadable.push_back({folder, error.message()});
    }
  }

  std::vector<fs::path> found;
  std::vector<Unreadable> unreadable;

 private:
  int deepest_;
};

/// Several at a time: most of it is waiting for the disk.
std::vector<RunSummary> summaries_of(const std::vector<fs::path>& folders) {
  std::vector<RunSummary> out(folders.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < folders.size(); i = next++) {
      out[i] = summary_of(folders[i]);
    }
  };
  std::vector<std::thread> threads;
  while (threads.size() + 1 < std::min(kThreads, folders.size() / kRunsEach + 1)) {
    threads.emplace_back(work);
  }
  work();
  for (std::thread& thread : threads) {
    thread.join();
  }
  return out;
}

}  // namespace

std::string_view to_word(RunState state) {
  constexpr std::string_view kWords[] = {"running", "finished", "stopped", "failed", "killed", "away", "unreadable"};
  return kWords[static_cast<std::size_t>(state)];
}

bool is_run(const fs::path& folder) {
  return is_there(folder / "run.json") ||
         (is_there(folder / "job.toml") && (is_there(folder / "metrics.jsonl") || is_there(folder / "checkpoints")));
}

RunSummary summary_of(const fs::path& folder) {
  RunSummary run;
  run.folder = folder;
  const fs::path normal = folder.lexically_normal();
  run.name = (normal.has_filename() && normal != "." ? normal : fs::absolute(normal).lexically_normal().parent_path()).filename().string();
  for (const char* file : {"metrics.jsonl", "run.json", "heartbeat.json"}) {
    run.changed = std::max(run.changed, written(folder / file));
  }
  try {
    add_record(run);
    add_result(run);
  } catch (const Error& error) {
    run.state = lock_of(folder) == Lock::held ? RunState::running : RunState::unreadable;
    run.reason = error.what();
  }
  try {
    run.max_steps = steps_of_job(folder / "job.toml");
    add_rows(run);
  } catch (const Error& error) {
    run.reason = run.reason.empty() ? error.what() : run.reason;
  }
  return run;
}

RunList list_runs(const fs::path& folder, int deepest) {
  std::error_code error;
  KF_CHECK(fs::is_directory(folder, error), Code::other, "{} is no folder that can be read{}", folder,
           error ? ": " + error.message() : std::string());
  Search search(deepest);
  search.look(folder, 0);
  RunList out{summaries_of(search.found), std::move(search.unreadable)};
  std::sort(out.runs.begin(), out.runs.end(),
            [](const RunSummary& a, const RunSummary& b) { return std::tie(a.began, a.folder) < std::tie(b.began, b.folder); });
  return out;
}

}  // namespace kf::report
