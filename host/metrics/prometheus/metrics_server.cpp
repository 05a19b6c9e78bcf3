#include "metrics/prometheus/metrics_server.h"

#include <httplib.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>
#include <utility>

#include "core/error.h"
#include "http/task_pool.h"

namespace kf {
namespace {

constexpr int kThreads = 4;
constexpr std::size_t kMostWaiting = 8;           // requests; further ones wait to be accepted
constexpr int kTimeout = 2;                       // seconds that a client may stand still
constexpr auto kGrace = std::chrono::seconds(1);  // for requests that are under way at the end
constexpr int kSpare = 100;                       // files that may still be opened

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

/// Of this port alone: the library's own options let two programs have the same one.
void reuse_address(int socket) {
  const int yes = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
}

std::unique_ptr<httplib::Server> make_server(std::function<std::string()> body, const http::TaskPool& pool) {
  auto server = std::make_unique<httplib::Server>();
  server->new_task_queue = [pool] { return pool.queue(/*joins=*/false); };
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
  http::TaskPool pool{kThreads, kMostWaiting};
  std::unique_ptr<httplib::Server> server;
  std::thread accepting;
};

MetricsServer::MetricsServer(const std::string& address, int port, std::function<std::string()> body) : parts_(std::make_unique<Parts>()) {
  const SignalsBlocked blocked;  // inherited by the threads
  parts_->server = make_server(std::move(body), parts_->pool);
  errno = 0;
  const bool bound = parts_->server->bind_to_port(address, port);
  KF_CHECK(bound, Code::other, "{}", errno != 0 ? std::strerror(errno) : "the address is none of this machine's");
  httplib::Server* const server = parts_->server.get();
  KF_CHECK(!is_crowded(), Code::other, "more than {} files are open", FD_SETSIZE - kSpare);
  parts_->accepting = std::thread([server] { server->listen_after_bind(); });
  while (!server->is_running()) {  // else `stop` would not reach it
    std::this_thread::yield();
  }
}

MetricsServer::~MetricsServer() {
  if (!parts_->accepting.joinable()) {
    return;  // it has never served
  }
  parts_->pool.close();
  parts_->server->stop();
  parts_->accepting.join();
  if (!parts_->pool.ends(kGrace)) {
    static_cast<void>(parts_->server.release());  // a client still holds a thread, which uses it: it ends with the process
  }
}

bool MetricsServer::is_crowded() { return http::is_crowded(kSpare); }

}  // namespace kf
