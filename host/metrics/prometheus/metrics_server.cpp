#include "metrics/prometheus/metrics_server.h"

#include <fcntl.h>
#include <httplib.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "core/error.h"

namespace kf {
namespace {

constexpr int kThreads = 4;
constexpr std::size_t kMostWaiting = 8;           // requests; further ones wait to be accepted
constexpr int kTimeout = 2;                       // seconds that a client may stand still
constexpr auto kGrace = std::chrono::seconds(1);  // for requests that are under way at the end
constexpr int kMostFiles = FD_SETSIZE - 100;

/// Signals go to the threads of the run; and a client that has left must not end the process, whatever SIGPIPE does elsewhere.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
    ::sigaction(SIGPIPE, nullptr, &before_pipe_);  // a server of the library changes it
  }
  ~SignalsBlocked() {
    ::sigaction(SIGPIPE, &before_pipe_, nullptr);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
  struct sigaction before_pipe_ {};
};

/// What the threads share; it lives as long as one of them.
struct Pool {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> jobs;
  int alive = 0;  // threads
  bool over = false;

  void close() {
    const std::lock_guard lock(mutex);
    over = true;
    changed.notify_all();
  }
  /// Whether all threads have ended, within the grace.
  bool ends() {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, kGrace, [this] { return alive == 0; });
  }
};

void work(const std::shared_ptr<Pool>& pool) {
  std::unique_lock lock(pool->mutex);
  while (true) {
    pool->changed.wait(lock, [&pool] { return pool->over || !pool->jobs.empty(); });
    if (pool->over) {
      break;
    }
    const std::function<void()> job = std::move(pool->jobs.front());
    pool->jobs.pop_front();
    pool->changed.notify_all();
    lock.unlock();
    job();
    lock.lock();
  }
  --pool->alive;
  pool->changed.notify_all();
}

/// The library's queue has no bound, and its end waits for every client.
class Queue final : public httplib::TaskQueue {
 public:
  explicit Queue(std::shared_ptr<Pool> pool) : pool_(std::move(pool)) {
    for (int i = 0; i < kThreads; ++i) {
      ++pool_->alive;
      std::thread(work, pool_).detach();
    }
  }
  void enqueue(std::function<void()> job) override {
    std::unique_lock lock(pool_->mutex);
    pool_->changed.wait(lock, [this] { return pool_->over || pool_->jobs.size() < kMostWaiting; });
    pool_->jobs.push_back(std::move(job));
    pool_->changed.notify_all();
  }
  void shutdown() override { pool_->close(); }

 private:
  std::shared_ptr<Pool> pool_;
};

class HttpServer final : public httplib::Server {
 public:
  int descriptor() const { return svr_sock_; }
};

/// Of this port alone: the library's own options let two programs have the same one.
void reuse_address(int socket) {
  const int yes = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
}

std::unique_ptr<HttpServer> make_server(std::function<std::string()> body, const std::shared_ptr<Pool>& pool) {
  auto server = std::make_unique<HttpServer>();
  server->new_task_queue = [pool] { return new Queue(pool); };  // the library owns it
  server->set_socket_options(reuse_address);
  server->set_read_timeout(kTimeout);
  server->set_write_timeout(kTimeout);
  server->set_keep_alive_max_count(1);
  server->set_payload_max_length(1024);
  server->Get("/metrics", [body = std::move(body)](const httplib::Request&, httplib::Response& response) {
    response.set_content(body(), "text/plain; version=0.0.4; charset=utf-8");
  });
  server->Get("/", [](const httplib::Request&, httplib::Response& response) { response.set_content("see /metrics\n", "text/plain"); });
  return server;
}

}  // namespace

struct MetricsServer::Parts {
  std::shared_ptr<Pool> pool = std::make_shared<Pool>();
  std::unique_ptr<HttpServer> server;
  std::thread accepting;
};

MetricsServer::MetricsServer(const std::string& address, int port, std::function<std::string()> body) : parts_(std::make_unique<Parts>()) {
  const SignalsBlocked blocked;  // inherited by the threads
  parts_->server = make_server(std::move(body), parts_->pool);
  errno = 0;
  const bool bound = parts_->server->bind_to_port(address, port);
  KF_CHECK(bound, Code::other, "{}", errno != 0 ? std::strerror(errno) : "the address is none of this machine's");
  HttpServer* const server = parts_->server.get();
  KF_CHECK(!is_crowded(), Code::other, "more than {} files are open", kMostFiles);
  parts_->accepting = std::thread([server] { server->listen_after_bind(); });
  while (!server->is_running()) {  // else `stop` would not reach it
    std::this_thread::yield();
  }
}

MetricsServer::~MetricsServer() {
  if (!parts_->accepting.joinable()) {
    return;  // it has never served
  }
  parts_->pool->close();
  parts_->server->stop();
  parts_->accepting.join();
  if (!parts_->pool->ends()) {
    static_cast<void>(parts_->server.release());  // a client still holds a thread, which uses it: it ends with the process
  }
}

bool MetricsServer::is_crowded() const {
  const int next = ::fcntl(parts_->server->descriptor(), F_DUPFD_CLOEXEC, 0);
  if (next >= 0) {
    ::close(next);
  }
  return next < 0 || next > kMostFiles;
}

}  // namespace kf
