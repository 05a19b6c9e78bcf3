#pragma once
// The socket of a run: takes what is said to it on a thread of its own, so that no client can hold up a step.

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "attach/address.h"
#include "attach/frame.h"
#include "core/descriptor.h"
#include "core/fs.h"

namespace kf::attach {

/// What a client wants; an answer to it is `answer(client, ...)`.
struct Said {
  std::int64_t client = 0;  // counts from 1
  Frame::Kind kind = Frame::Kind::chunk;
  std::string text;
};

/// What a client is told.
struct Answer {
  std::string output;
  std::string error = {};  // "" for none
  int status = 0;          // its exit status
};

/// Each client has one wish at a time: what it sends meanwhile waits in the socket, and what it does not read waits here.
class Server {
 public:
  /// Listens on attach.sock in the folder, for this user alone; one that a killed process has left is replaced. `gone` hears, on another
  /// thread, of each client that goes away before its wish is answered; it throws nothing. Throws Code::other where a process listens
  /// there, or something else has the name, or the file system has no sockets.
  explicit Server(const fs::path& folder, std::function<void(std::int64_t client)> gone = {});
  /// Tells all who are there that the run has ended, and takes the socket away.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// What has come since the last time, in order. Does not wait: one load where nothing has.
  std::vector<Said> take();
  /// To a client whose wish was taken; nothing happens where it has gone away.
  void answer(std::int64_t client, const Answer& answer);
  /// Whether a client is still there.
  bool has(std::int64_t client) const;
  /// What those hear who are there at the end.
  void set_last_words(const std::string& words);

 private:
  struct Client {
    Descriptor socket;
    FrameReader in;
    std::string out;      // what the client has not read yet
    bool waits = false;   // its wish is not answered
    bool leaves = false;  // it is told the rest of `out` and no more
  };

  void listen(const fs::path& folder);
  void serve();
  void serve_once();
  void welcome();
  static bool hear(Client& client, int events);
  void take_wish(std::int64_t number, Client& client);
  void drop(std::int64_t number);
  static void send(Client& client, const Frame& frame) { client.out += to_bytes(frame); }
  void wake() const;

  std::function<void(std::int64_t)> gone_;
  Address address_;
  Descriptor listener_;
  Descriptor woken_;                              // an eventfd
  std::pair<std::uint64_t, std::uint64_t> file_;  // device and inode of the socket
  std::atomic<bool> any_{false};                  // whether `said_` has something
  mutable std::mutex mutex_;                      // of what follows
  std::vector<Said> said_;
  std::map<std::int64_t, Client> clients_;
  std::int64_t last_ = 0;  // number of the last client
  bool ends_ = false;
  std::string last_words_ = "the run has ended";
  std::thread thread_;  // last: it sees the rest
};

}  // namespace kf::attach
