#include "metrics/prometheus/prometheus.h"

#include <catch2/catch.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <csignal>

#include "core/descriptor.h"
#include "core/error.h"
#include "core/log.h"
#include "support/free_port.h"
#include "support/temp_dir.h"

#include "tracked_run.h"

using namespace kf;
using Catch::Matchers::Contains;
using kf::test::TrackedRun;

namespace {

sockaddr_in loopback(int port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(static_cast<std::uint16_t>(port));
  out.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return out;
}

/// A connection on which `text` was sent.
Descriptor asked(int port, const std::string& text) {
  Descriptor out(::socket(AF_INET, SOCK_STREAM, 0));
  const timeval patience{10, 0};
  ::setsockopt(out.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  const sockaddr_in address = loopback(port);
  REQUIRE(::connect(out.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(::send(out.get(), text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()));
  return out;
}

std::string answer_of(const Descriptor& connection) {
  std::string out;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::recv(connection.get(), buffer, sizeof buffer, 0)) > 0;) {
    out.append(buffer, static_cast<std::size_t>(got));
  }
  return out;
}

std::string page(int port) { return answer_of(asked(port, "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")); }

struct Served {
  Served() { run.config.metrics.prometheus_port = port; }
  test::TempDir dir;
  int port = test::free_port();
  TrackedRun run{dir.path()};
};

}  // namespace

TEST_CASE("prometheus: the last row and the last evaluation are served until the end", "[trackers]") {
  Served served;
  PrometheusSink sink;
  served.run.begin(sink, 0);
  test::tell_steps(sink, 1, 3, 1.25);
  sink.eval({.step = 3, .loss = 0.5, .perplexity = 1.6, .tokens = 64});
  const std::string got = page(served.port);
  CHECK_THAT(got, Contains("HTTP/1.1 200"));
  CHECK_THAT(got, Contains("text/plain; version=0.0.4"));
  CHECK_THAT(got, Contains("kf_loss{run=\"a run\",run_id=\"20261128-2147-5f3a91c2\",rank=\"0\"} 1.25\n"));
  CHECK_THAT(got, Contains("kf_step{run=\"a run\",run_id=\"20261128-2147-5f3a91c2\",rank=\"0\"} 3\n"));
  CHECK_THAT(got, Contains(",metric=\"eval/loss\"} 0.5\n"));
  sink.end({.status = "complete"});
  const sockaddr_in address = loopback(served.port);
  const Descriptor late(::socket(AF_INET, SOCK_STREAM, 0));
  CHECK(::connect(late.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0);
}

TEST_CASE("prometheus: strange requests and clients that never go on hold nobody up", "[trackers]") {
  Served served;
  PrometheusSink sink;
  served.run.begin(sink, 0);
  test::tell_steps(sink, 1, 1, 1);
  CHECK_THAT(answer_of(asked(served.port, "GET /../../etc/passwd HTTP/1.1\r\nConnection: close\r\n\r\n")), Contains(" 404 "));
  CHECK_THAT(answer_of(asked(served.port, "DELETE /metrics HTTP/1.1\r\nConnection: close\r\n\r\n")), Contains(" 404 "));
  answer_of(asked(served.port, std::string(20000, 'x') + "\r\n\r\n"));
  answer_of(asked(served.port, std::string("\0\xff\x01\r\n\r\n", 7)));
  {
    std::vector<Descriptor> idle;
    for (int i = 0; i < 20; ++i) {
      idle.push_back(asked(served.port, "GET /metrics HTTP/1.1\r\nX: "));
    }
    const auto begin = std::chrono::steady_clock::now();
    test::tell_steps(sink, 2, 200, 1);
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30));  // it does not wait at all
    idle.clear();
  }
  CHECK_THAT(page(served.port), Contains("} 200\n"));
  const Descriptor last = asked(served.port, "GET /metrics HTTP/1.1\r\nX: ");
  sink.end({.status = "complete"});  // with a client still there
}

TEST_CASE("prometheus: a port that another has is a warning, and the handling of signals stays what it was", "[trackers]") {
  Served first;
  PrometheusSink sink;
  std::signal(SIGPIPE, SIG_DFL);
  first.run.begin(sink, 0);
  CHECK(std::signal(SIGPIPE, SIG_DFL) == SIG_DFL);
  const std::size_t warnings = log::count(log::Level::warn);
  PrometheusSink second;
  first.run.begin(second, 0);
  CHECK(log::count(log::Level::warn) == warnings + 1);
  test::tell_steps(second, 1, 1, 1);
  second.end({.status = "complete"});
  test::tell_steps(sink, 1, 1, 7);
  CHECK_THAT(page(first.port), Contains("} 7\n"));
}
