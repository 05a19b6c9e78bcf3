#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <iostream>
#include <thread>

#include "app/command/commands.h"
#include "app/help/usage.h"
#include "app/line/option_list.h"
#include "core/descriptor.h"
#include "core/error.h"
#include "report/serve/server.h"
#include "report/terminal/printable.h"

namespace kf {
namespace {

constexpr int kPort = 8484;

/// While it lives, SIGINT, SIGTERM and SIGHUP end the server, those that are not ignored. At most one at a time.
class EndBySignal {
 public:
  explicit EndBySignal(report::Server& server) : event_(::eventfd(0, EFD_CLOEXEC)) {
    KF_CHECK(event_.get() >= 0, Code::other, "the system gives no eventfd");
    waiting_ = event_.get();
    thread_ = std::thread([this, &server] {
      std::uint64_t count = 0;
      while (::read(event_.get(), &count, sizeof count) < 0 && errno == EINTR) {
      }
      server.stop();
    });
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      ::sigaction(kSignals[i], nullptr, &before_[i]);
      if (before_[i].sa_handler != SIG_IGN) {
        struct sigaction action {};
        action.sa_handler = [](int /*number*/) { tell(); };
        action.sa_flags = SA_RESTART;
        ::sigaction(kSignals[i], &action, nullptr);
      }
    }
  }
  ~EndBySignal() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      ::sigaction(kSignals[i], &before_[i], nullptr);
    }
    tell();  // where the server has ended by itself
    thread_.join();
  }
  EndBySignal(const EndBySignal&) = delete;
  EndBySignal& operator=(const EndBySignal&) = delete;

 private:
  static constexpr std::array<int, 3> kSignals{SIGINT, SIGTERM, SIGHUP};
  static inline std::atomic<int> waiting_{-1};  // for the handler

  static void tell() {
    const int before = errno;
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(waiting_, &one, sizeof one);
    errno = before;
  }

  Descriptor event_;
  std::array<struct sigaction, kSignals.size()> before_{};
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
