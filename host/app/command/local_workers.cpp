#include "app/command/local_workers.h"

#include <poll.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>

#include "app/command/local_ranks.h"
#include "app/command/passed_signals.h"
#include "app/command/rank_process.h"
#include "core/error.h"
#include "core/fs.h"
#include "core/scratch_folder.h"
#include "parallel/meeting_store.h"
#include "parallel/worker_place.h"
#include "run/invocation.h"

namespace kf {
namespace {

constexpr int kTickMs = 200;

/// As all processes of a worker see it, wherever they are started.
std::string place_of(const std::string& named) { return is_meeting_store(named) ? named : fs::absolute(named).string(); }

class Workers {
 public:
  Workers(const WorkerOptions& options, std::int64_t processes, bool leader_only, const std::vector<std::string>& args)
      : folder_("kf-host-workers", Code::communication) {
    std::vector<std::string> argv{fs::read_symlink("/proc/self/exe").string()};
    argv.insert(argv.end(), args.begin(), args.end());
    const std::string meet = options.place.empty() ? folder_.path().string() : place_of(options.place);
    if (is_meeting_store(meet)) {
      keeper_.emplace(meet, options.workers);
    }
    const RankProcess::Output others = leader_only ? RankProcess::Output::kept : RankProcess::Output::prefixed;
    for (std::int64_t worker = 0; worker < options.workers; ++worker) {
      std::map<std::string, std::string> environment = variables_of({meet, worker, options.workers, true});
      share_cores(options.workers * processes, environment);
      workers_.push_back(
          std::make_unique<RankProcess>(worker, argv, environment, worker == 0 ? RankProcess::Output::own : others, "worker"));
    }
  }

  int wait() {
    while (running()) {
      wait_for_news();
      signals_.take([this](int number) {
        for (const auto& worker : workers_) {
          worker->child().signal(number);
        }
      });
    }
    return status();
  }

 private:
  bool running() {
    bool any = false;
    for (const auto& worker : workers_) {
      const bool ended = worker->child().poll().has_value();
      if (ended) {
        worker->finish();
      }
      any = any || !ended;
    }
    return any;
  }

  void wait_for_news() {
    std::vector<pollfd> news;
    for (const auto& worker : workers_) {
      if (worker->output() >= 0) {
        news.push_back({worker->output(), POLLIN, 0});
      }
      if (!worker->child().poll() && worker->child().descriptor() >= 0) {
        news.push_back({worker->child().descriptor(), POLLIN, 0});
      }
    }
    ::poll(news.data(), news.size(), kTickMs);
    for (const auto& worker : workers_) {
      while (worker->output() >= 0 && worker->forward()) {
      }
    }
  }

  int status() const {
    bool any_done = false, any_stopped = false;
    int first = 0;
    for (const auto& worker : workers_) {
      const Child::Ending ending = *worker->child().poll();
      const int status = ending.signal != 0 ? 128 + ending.signal : ending.status;
      any_done = any_done || status == 0;
      any_stopped = any_stopped || status == kStoppedStatus;
      if (status != 0 && status != kStoppedStatus) {
        worker->tell();
        std::fprintf(stderr, "kf-host: worker %lld %s %s\n", static_cast<long long>(worker->rank()),
                     ending.signal != 0 ? "was" : "ended with", ending.describe().c_str());
        first = first == 0 ? status : first;
      }
    }
    if (any_stopped) {
      return kStoppedStatus;
    }
    return any_done ? 0 : first;
  }

  ScratchFolder folder_;  // where they meet, or
  std::optional<MeetingKeeper> keeper_;
  PassedSignals signals_;
  std::vector<std::unique_ptr<RankProcess>> workers_;
};

}  // namespace

int run_local_workers(const WorkerOptions& workers, std::int64_t processes, bool leader_only, const std::vector<std::string>& args) {
  return Workers(workers, processes, leader_only, args).wait();
}

void be_worker(const WorkerOptions& workers) {
  const WorkerPlace place{place_of(workers.place), *workers.worker, workers.workers, false};
  for (const auto& [name, value] : variables_of(place)) {
    ::setenv(name.c_str(), value.c_str(), 1);
  }
}

}  // namespace kf
