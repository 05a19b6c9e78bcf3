#include "app/command/local_ranks.h"

#include <poll.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <thread>

#include "app/command/passed_signals.h"
#include "app/command/rank_process.h"
#include "core/error.h"
#include "core/log.h"
#include "core/scratch_folder.h"
#include "core/visible_gpus.h"
#include "parallel/rendezvous.h"
#include "run/invocation.h"
#include "run/launch.h"

namespace kf {
namespace {

using Clock = std::chrono::steady_clock;
constexpr const char* kWords = "KF_LAUNCH_WORDS";
constexpr int kTickMs = 200;
// After the first failure: the others learn of it through the rendezvous and say so; then they are asked to end, then ended.
constexpr std::chrono::seconds kTimeToSay{6};
constexpr std::chrono::seconds kTimeToEnd{20};  // what a rank writes alone is written; it has heard that the others are gone
constexpr int kConsequence = static_cast<int>(Code::communication);

class Launcher {
 public:
  Launcher(const LocalRanks& ranks, const std::vector<std::string>& args)
      : folder_("kf-host-ranks", Code::communication),
        where_(ranks.where.empty() ? "file:" + (folder_.path() / "rendezvous").string() : ranks.where) {
    std::vector<std::string> argv{fs::read_symlink("/proc/self/exe").string()};
    argv.insert(argv.end(), args.begin(), args.end());
    const RankProcess::Output others = ranks.leader_only ? RankProcess::Output::kept : RankProcess::Output::prefixed;
    for (std::int64_t local = 0; local < ranks.count; ++local) {
      const std::int64_t rank = ranks.node * ranks.count + local;
      ranks_.push_back(
          std::make_unique<RankProcess>(rank, argv, environment_of(ranks, local), rank == 0 ? RankProcess::Output::own : others));
      ranks_.back()->tell_once(said_);
    }
  }

  int wait() {
    while (running() > 0) {
      wait_for_news();
      signals_.take([this](int number) { signal_all(number); });
      end_the_rest();
    }
    tell_cause();
    return status_;
  }

 private:
  std::map<std::string, std::string> environment_of(const LocalRanks& ranks, std::int64_t local) const {
    std::map<std::string, std::string> out{{kRankVariable, std::to_string(ranks.node * ranks.count + local)},
                                           {kWorldVariable, std::to_string(ranks.world())},
                                           {kLocalRankVariable, std::to_string(local)},
                                           {kLocalWorldVariable, std::to_string(ranks.count)},
                                           {kRendezvousVariable, where_}};
    std::vector<std::string> words = ranks.words;
    if (ranks.restarts > 0) {
      words.insert(words.begin(), {"--max-restarts", std::to_string(ranks.restarts)});
    }
    out[kWords] = join(words, "\n");
    share_cores(ranks.count, out);
    return out;
  }

  std::int64_t running() {
    std::int64_t count = 0;
    for (const auto& rank : ranks_) {
      const bool ended = rank->child().poll().has_value();
      if (ended) {
        rank->finish();
        note(*rank);
      }
      count += ended ? 0 : 1;
    }
    return count;
  }

  /// The first failure decides the status; one that is no consequence of another's takes its place.
  void note(RankProcess& rank) {
    if (std::find(noted_.begin(), noted_.end(), rank.rank()) != noted_.end()) {
      return;
    }
    noted_.push_back(rank.rank());
    const Child::Ending ending = *rank.child().poll();
    const int status = ending.signal != 0 ? 128 + ending.signal : ending.status;
    if (status != 0 && (status_ == 0 || (status_ == kConsequence && status != kConsequence && !ended_))) {
      status_ = status;
      cause_ = &rank;
    }
    if (status == 0 || status == kStoppedStatus || ended_) {
      return;
    }
    failed_ = failed_.value_or(Clock::now());
    if (ending.signal != 0) {
      std::fprintf(stderr, "kf-host: rank %lld was %s\n", static_cast<long long>(rank.rank()), ending.describe().c_str());
    }
    tell_others(rank, ending);
  }

  /// A rank that has joined has said itself why it ends, unless it was killed; one that has not is waited for. A rendezvous by TCP ends
  /// with rank 0.
  void tell_others(const RankProcess& rank, const Child::Ending& ending) const {
    if (rank.rank() == 0 && !where_.starts_with("file:")) {
      return;
    }
    const std::string last = rank.last_line().empty() ? "" : ": " + rank.last_line();
    leave_verdict(where_, ending.signal != 0
                              ? format("rank {} is gone: it was {}", rank.rank(), ending.describe())
                              : format("rank {} ended with status {}{}", rank.rank(), static_cast<std::int64_t>(ending.status), last));
  }

  /// Of several messages, which one to read.
  void tell_cause() const {
    if (cause_ == nullptr || status_ == kStoppedStatus) {
      return;
    }
    cause_->tell();
    if (ranks_.size() > 1 && cause_->child().poll()->signal == 0) {
      std::fprintf(stderr, "kf-host: rank %lld was the first to fail, with status %d\n", static_cast<long long>(cause_->rank()), status_);
    }
  }

  void wait_for_news() {
    std::vector<pollfd> news;
    for (const auto& rank : ranks_) {
      if (rank->output() >= 0) {
        news.push_back({rank->output(), POLLIN, 0});
      }
      if (!rank->child().poll() && rank->child().descriptor() >= 0) {
        news.push_back({rank->child().descriptor(), POLLIN, 0});
      }
    }
    if (::poll(news.data(), news.size(), kTickMs) <= 0) {
      return;
    }
    for (const auto& rank : ranks_) {
      const auto ready = std::find_if(news.begin(), news.end(), [&](const pollfd& one) { return one.fd == rank->output(); });
      if (rank->output() >= 0 && ready != news.end() && ready->revents != 0) {
        rank->forward();
      }
    }
  }

  /// A rank that outlives the first failure for long is asked to end, also one that was stopped, and ended where it does not answer.
  void end_the_rest() {
    if (!failed_ || Clock::now() - *failed_ < kTimeToSay) {
      return;
    }
    const bool by_force = Clock::now() - *failed_ > kTimeToEnd;
    if (!ended_ || by_force) {
      signal_all(by_force ? SIGKILL : SIGTERM);
      signal_all(SIGCONT);
    }
    ended_ = true;
  }

  void signal_all(int number) {
    for (const auto& rank : ranks_) {
      rank->child().signal(number);
    }
  }

  ScratchFolder folder_;  // of the rendezvous
  std::string where_;
  PassedSignals signals_;
  std::set<std::string> said_;  // errors of ranks
  std::vector<std::unique_ptr<RankProcess>> ranks_;
  std::vector<std::int64_t> noted_;  // ranks whose end has been seen
  std::optional<Clock::time_point> failed_;
  RankProcess* cause_ = nullptr;  // whose status it is
  bool ended_ = false;            // the rest has been asked to end
  int status_ = 0;
};

}  // namespace

void share_cores(std::int64_t count, std::map<std::string, std::string>& environment) {
  if (std::getenv("OMP_NUM_THREADS") == nullptr) {
    const auto cores = static_cast<std::int64_t>(std::max(1U, std::thread::hardware_concurrency()));
    environment["OMP_NUM_THREADS"] = std::to_string(std::max<std::int64_t>(1, cores / count));
  }
}

LocalRanks local_ranks(const LaunchOptions& options, const LaunchedRank& machines) {
  KF_CHECK(options.starts(), Code::config,
           "--nnodes and --node-rank say how many machines start --nproc N processes each; give --nproc, too");
  LocalRanks out;
  out.count = options.of_gpus ? static_cast<std::int64_t>(visible_gpus().size()) : *options.processes;
  KF_CHECK(out.count > 0, Code::config,
           "--nproc gpu: no GPU is seen on this machine (CUDA_VISIBLE_DEVICES chooses); say how many processes");
  out.nodes = options.nodes.value_or(1);
  out.leader_only = options.leader_only;
  KF_CHECK(
      machines.world == 1 || options.nodes == machines.world, Code::config,
      "{} has started {} processes of this program ({}), and each would start {} ranks of a run of its own: leave --nproc out, and each "
      "is a rank; or give --nnodes {} and start one on each machine",
      machines.by, machines.world, machines.told, out.count, machines.world);
  KF_CHECK(machines.world == 1 || !options.node, Code::config,
           "--node-rank {}: {} has said already which machine this is ({}); leave --node-rank out", options.node.value_or(0), machines.by,
           machines.told);
  out.node = machines.world > 1 ? machines.rank : options.node.value_or(0);
  KF_CHECK(machines.world > 1 || out.nodes == 1 || options.node, Code::config,
           "--nnodes {}: say which machine this is, --node-rank 0 to {}", out.nodes, out.nodes - 1);
  KF_CHECK(out.node < out.nodes, Code::config, "--node-rank {} of --nnodes {}: machines count from 0", out.node, out.nodes);
  out.where = options.rendezvous.empty() && out.nodes > 1 ? machines.where : options.rendezvous;
  KF_CHECK(out.nodes == 1 || !out.where.empty(), Code::config,
           "--nnodes {}: say where the machines meet, --rdzv HOST:PORT with the name of machine 0 and a free port there", out.nodes);
  out.words = {"--nproc", options.of_gpus ? "gpu" : std::to_string(out.count)};
  if (out.nodes > 1) {
    out.words.insert(out.words.end(), {"--nnodes", std::to_string(out.nodes)});
  }
  if (options.node) {
    out.words.insert(out.words.end(), {"--node-rank", std::to_string(*options.node)});
  }
  if (!options.rendezvous.empty()) {
    out.words.insert(out.words.end(), {"--rdzv", options.rendezvous});
  }
  return out;
}

int run_local_ranks(const LocalRanks& ranks, const std::vector<std::string>& args) {
  if (!ranks.where.empty()) {
    const std::int64_t first = ranks.node * ranks.count, last = first + ranks.count - 1;
    find_rendezvous(ranks.where, first == last ? format("rank {}", first) : format("ranks {} to {}", first, last));
  }
  return Launcher(ranks, args).wait();
}

std::vector<std::string> take_launch_words() {
  const char* const text = std::getenv(kWords);
  std::vector<std::string> words = text != nullptr && *text != '\0' ? split(text, '\n') : std::vector<std::string>();
  ::unsetenv(kWords);
  return words;
}

void follow_launcher() { ::prctl(PR_SET_PDEATHSIG, SIGTERM); }

void started_with(const std::vector<std::string>& options) {
  std::vector<std::string> words = invocation();
  words.insert(words.begin() + (words.size() > 1 && words[1] == "train" ? 2 : 1), options.begin(), options.end());
  set_invocation(std::move(words));
}

void be_a_rank(const Launch& launch) {
  follow_launcher();
  launch.hide_from_children();
  log::show_errors_only(!launch.leads());
  started_with(take_launch_words());
  launch.share_cores();
}

}  // namespace kf
