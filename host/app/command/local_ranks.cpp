#include "app/command/local_ranks.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "app/command/passed_signals.h"
#include "config/tree/literal.h"
#include "core/child.h"
#include "core/descriptor.h"
#include "core/error.h"
#include "core/scratch_folder.h"
#include "run/invocation.h"
#include "run/launch.h"

namespace kf {
namespace {

using Clock = std::chrono::steady_clock;
constexpr const char* kRestarts = "KF_RESTARTS_OF_RANKS";
constexpr int kTickMs = 200;
// After the first failure: the others learn of it through the rendezvous and say so; then they are asked to end, then ended.
constexpr std::chrono::seconds kTimeToSay{10};
constexpr std::chrono::seconds kTimeToEnd{15};

/// Both ends of a pipe; the child gets the second one alone.
struct Pipe {
  Descriptor read, write;
  Pipe() {
    int ends[2];
    KF_CHECK(::pipe2(ends, O_CLOEXEC) == 0, Code::other, "no pipe for the output of a rank: {}", std::strerror(errno));
    read = Descriptor(ends[0]);
    write = Descriptor(ends[1]);
    KF_CHECK(::fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0, Code::other, "the pipe for the output of a rank: {}", std::strerror(errno));
  }
};

constexpr int kPipeful = 32;  // reads that empty a pipe

/// One process and what it writes.
class Rank {
 public:
  Rank(std::int64_t number, const std::vector<std::string>& argv, const std::map<std::string, std::string>& environment) : number_(number) {
    if (number == 0) {
      child_ = std::make_unique<Child>(argv, environment, ChildOutput{});
      return;
    }
    Pipe pipe;
    child_ = std::make_unique<Child>(argv, environment, ChildOutput{{}, pipe.write.get()});
    output_ = std::move(pipe.read);
  }

  Child& child() { return *child_; }
  std::int64_t number() const { return number_; }
  int output() const { return output_.get(); }

  /// Reads what there is, and whether there was something; at the end closes the pipe.
  bool forward() {
    char bytes[4096];
    const ssize_t got = ::read(output_.get(), bytes, sizeof bytes);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
      return false;
    }
    text_.append(bytes, got > 0 ? static_cast<std::size_t>(got) : 0);
    for (std::size_t end = text_.find('\n'); end != std::string::npos; end = text_.find('\n')) {
      print(text_.substr(0, end));
      text_.erase(0, end + 1);
    }
    if (got <= 0) {
      close();
    }
    return got > 0;
  }

  /// Of a process that has ended: what it has left. Its own children may hold the other end for ever; nobody waits for them.
  void finish() {
    for (int reads = 0; reads < kPipeful && output() >= 0 && forward(); ++reads) {
    }
    if (output() >= 0) {
      close();
    }
  }

 private:
  void close() {
    if (!text_.empty()) {
      print(text_);
    }
    const Descriptor ended = std::move(output_);
  }
  void print(const std::string& line) const { std::fprintf(stderr, "[rank %lld] %s\n", static_cast<long long>(number_), line.c_str()); }

  std::int64_t number_;
  std::unique_ptr<Child> child_;
  Descriptor output_;
  std::string text_;  // of a line that has not ended
};

/// Several processes share the cores, unless the user has said how.
std::string threads_each(std::int64_t count) {
  const auto cores = static_cast<std::int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  return std::to_string(std::max<std::int64_t>(1, cores / count));
}

class LocalRanks {
 public:
  LocalRanks(std::int64_t count, std::int64_t restarts, const std::vector<std::string>& args)
      : folder_("kf-host-ranks", Code::communication) {
    std::vector<std::string> argv{fs::read_symlink("/proc/self/exe").string()};
    argv.insert(argv.end(), args.begin(), args.end());
    for (std::int64_t rank = 0; rank < count; ++rank) {
      std::map<std::string, std::string> environment{{kRankVariable, std::to_string(rank)},
                                                     {kWorldVariable, std::to_string(count)},
                                                     {kRendezvousVariable, "file:" + (folder_.path() / "rendezvous").string()}};
      if (restarts > 0) {
        environment[kRestarts] = std::to_string(restarts);
      }
      if (std::getenv("OMP_NUM_THREADS") == nullptr) {
        environment["OMP_NUM_THREADS"] = threads_each(count);
      }
      ranks_.push_back(std::make_unique<Rank>(rank, argv, environment));
    }
  }

  int wait() {
    while (running() > 0) {
      wait_for_news();
      signals_.take([this](int number) { signal_all(number); });
      end_the_rest();
    }
    return status_;
  }

 private:
  std::int64_t running() {
    std::int64_t count = 0;
    for (const auto& rank : ranks_) {
      const bool ended = rank->child().poll().has_value();
      if (ended) {
        note(*rank);
        rank->finish();
      }
      count += ended ? 0 : 1;
    }
    return count;
  }

  /// The first failure decides the status; one that is no consequence of another's takes its place.
  void note(Rank& rank) {
    if (std::find(noted_.begin(), noted_.end(), rank.number()) != noted_.end()) {
      return;
    }
    noted_.push_back(rank.number());
    const Child::Ending ending = *rank.child().poll();
    const int status = ending.signal != 0 ? 128 + ending.signal : ending.status;
    constexpr int kConsequence = static_cast<int>(Code::communication);
    if (status != 0 && (status_ == 0 || (status_ == kConsequence && status != kConsequence && !ended_))) {
      status_ = status;
    }
    if (status != 0 && status != kStoppedStatus && !failed_) {
      failed_ = Clock::now();
    }
    if (ending.signal != 0 && !ended_) {
      std::fprintf(stderr, "kf-host: rank %lld was %s\n", static_cast<long long>(rank.number()), ending.describe().c_str());
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

  /// The longer a rank outlives the first failure, the less it is asked.
  void end_the_rest() {
    if (!failed_ || Clock::now() - *failed_ < kTimeToSay) {
      return;
    }
    const bool by_force = Clock::now() - *failed_ > kTimeToEnd;
    if (!ended_ || by_force) {
      signal_all(by_force ? SIGKILL : SIGTERM);
    }
    ended_ = true;
  }

  void signal_all(int number) {
    for (const auto& rank : ranks_) {
      rank->child().signal(number);
    }
  }

  ScratchFolder folder_;  // of the rendezvous
  PassedSignals signals_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<std::int64_t> noted_;  // ranks whose end has been seen
  std::optional<Clock::time_point> failed_;
  bool ended_ = false;  // the rest has been asked to end
  int status_ = 0;
};

}  // namespace

int run_local_ranks(std::int64_t count, std::int64_t restarts, const std::vector<std::string>& args) {
  return LocalRanks(count, restarts, args).wait();
}

std::int64_t take_restarts_of_ranks() {
  const char* const text = std::getenv(kRestarts);
  const std::int64_t restarts = text != nullptr ? config::parse_int(text).value_or(0) : 0;
  ::unsetenv(kRestarts);
  return restarts;
}

void follow_launcher() { ::prctl(PR_SET_PDEATHSIG, SIGTERM); }

}  // namespace kf
