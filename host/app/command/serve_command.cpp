#include <csignal>
#include <iostream>
#include <thread>

#include "app/command/commands.h"
#include "app/help/usage.h"
#include "app/line/option_list.h"
#include "core/error.h"
#include "report/serve/server.h"
#include "report/terminal/printable.h"

namespace kf {
namespace {

constexpr int kPort = 8484;

/// While it lives, SIGINT and SIGTERM end the server, and no thread that is started meanwhile gets them.
class EndBySignal {
 public:
  explicit EndBySignal(report::Server& server) {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
    thread_ = std::thread([this, &server] {
      int signal = 0;
      ::sigwait(&signals_, &signal);
      server.stop();
    });
  }
  ~EndBySignal() {
    ::pthread_kill(thread_.native_handle(), SIGTERM);  // where the server has ended by itself
    thread_.join();
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  EndBySignal(const EndBySignal&) = delete;
  EndBySignal& operator=(const EndBySignal&) = delete;

 private:
  sigset_t signals_{}, before_{};
  std::thread thread_;
};

}  // namespace

int serve_command(const Arguments& args) {
  const OptionList options = parse_options(args, {"kf-host serve", {"--port"}, {"--steer"}});
  KF_CHECK(options.words.size() <= 1, Code::config, "{}", usage::kServe);
  const std::string folder = options.words.empty() ? "runs" : options.words.front();
  std::error_code error;
  const fs::path root = fs::canonical(folder, error);
  KF_CHECK(!error && fs::is_directory(root, error), Code::config, "{} is no folder; name one that has runs in it or below it",
           report::printable(folder));
  report::Server server(root, options.has("--steer"));
  server.bind(options.has("--port") ? option_number<int>("--port", options.last("--port"), 0, 65535) : kPort);
  const EndBySignal end(server);
  std::cout << "the runs in " << report::printable(root.string()) << ": " << server.address() << '\n'
            << "Ctrl-C ends it; from another machine: ssh -L " << server.port() << ":127.0.0.1:" << server.port()
            << " HOST, then the same address" << std::endl;  // whoever reads a pipe waits for it
  server.serve();
  return 0;
}

}  // namespace kf
