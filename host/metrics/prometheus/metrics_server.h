#pragma once
// HTTP for scrapers: GET /metrics. The library's header stays in metrics_server.cpp.

#include <functional>
#include <memory>
#include <string>

namespace kf {

/// Answers on threads of its own, a few at a time, so whoever asks, and however slowly they read, costs the run nothing: a reader that
/// takes too long is left, requests beyond a handful wait in the system's own queue, and the end of the run waits a second for them at
/// most.
class MetricsServer {
 public:
  /// Serves at once. `body` is called for each request, on any thread. Throws Code::other where it cannot: another program has the port,
  /// the address is none of this machine's.
  MetricsServer(const std::string& address, int port, std::function<std::string()> body);
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  /// Whether the process has so many files open that the library, which waits with select(), could not take further connections.
  static bool is_crowded();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace kf
