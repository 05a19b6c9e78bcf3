#pragma once
// The page over HTTP, on this machine's loopback alone, for those who know its address.

#include <memory>
#include <string>

#include "core/fs.h"

namespace kf::report {

/// Answers GET and HEAD of `/` (the page), `/run?key=KEY` (a run; with `from` and `to` its curves between two steps), `/sweeps` and
/// `/events` (server-sent events: "runs", whenever one has changed), each with `token=TOKEN`; 403 to whoever does not have the token or has
/// come by another name than the loopback's, 503 while too many wait. Nothing is ever written.
///
/// With `steers` also POST of `/steer?key=KEY&wish=WISH[&value=V]`, which says something to a run that trains (steer.h): 204 when it has
/// taken it, 409 with the reason where it does not.
class Server {
 public:
  explicit Server(fs::path root, bool steers = false);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Takes the port of 127.0.0.1; 0: a free one. Throws Code::config where it is taken.
  void bind(int port);
  /// http://127.0.0.1:PORT/?token=TOKEN
  std::string address() const;
  int port() const;
  /// Answers until `stop`, which another thread calls.
  void serve();
  void stop();

 private:
  class Http;
  std::unique_ptr<Http> http_;
};

}  // namespace kf::report
