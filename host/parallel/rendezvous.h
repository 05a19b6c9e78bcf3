#pragma once
// Where processes find each other, and where they leave word when one of them ends.

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "parallel/gloo_link.h"

namespace kf {

/// How a process finds the others.
struct Rendezvous {
  /// "HOST:PORT": rank 0 listens there (its end ends the rendezvous). "file:PATH": a file that is not there yet and that all can write.
  std::string where;
  std::int64_t rank = 0;
  std::int64_t world = 1;
  /// The longest wait for other ranks, at the start and in every call.
  std::chrono::milliseconds timeout{std::chrono::minutes(30)};
  /// This machine's address for the others. Empty: its own where `where` is on this machine (a file, localhost), else what its host name
  /// is.
  std::string address = {};
  /// Somebody else keeps the store at HOST:PORT (torchrun's agent), which is there already; the keys of this run begin with `prefix`.
  bool kept = false;
  std::string prefix = {};
  /// By rank, where known: the machine that it should be on. Messages name it.
  std::vector<std::string> hosts = {};
};

/// For who is about to start ranks, which `who` names: throws Code::config where they could not find `where`, before each says so.
void find_rendezvous(const std::string& where, const std::string& who);

/// For who has started ranks and sees one end that the others may be waiting for: leaves word at `where` why, unless somebody has; they
/// all throw it. Does nothing where the store is gone. Waits at most some seconds.
void leave_verdict(const std::string& where, const std::string& why) noexcept;

/// A key-value store that all processes of a run share. Calls from several threads are safe (c10d's stores lock).
///
/// Keys: "host/RANK": the machine that it is on; "arrived/GROUP/RANK"; "left/RANK": a rank that has seen an error; "at/GROUP/NUMBER/RANK":
/// the call in which it saw it; "verdict": why the run ended, the first that anybody wrote.
class Room {
 public:
  /// Throws Code::communication when nobody is there in time, and names who is missing.
  explicit Room(const Rendezvous& rendezvous);
  ~Room();
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;

  const Rendezvous& rendezvous() const { return rendezvous_; }
  /// Waits for `ranks` (of the world) at `key` and connects them.
  std::shared_ptr<GlooLink> connect(const std::string& key, const std::vector<std::int64_t>& ranks, std::int64_t rank);

  /// Leaves word of an error seen in call `number` of group `key`.
  void leave(const std::string& key, std::int64_t number) noexcept;
  /// Which of `ranks` have not left word of that call within `patience`.
  std::vector<std::int64_t> missing(const std::string& key, std::int64_t number, const std::vector<std::int64_t>& ranks,
                                    std::chrono::milliseconds patience) noexcept;
  /// Why the run ended: what the first said, which is `why` if nobody had said anything. Closes nothing.
  std::string settle(const std::string& why) noexcept;
  /// As `settle`, for who saw the connection to `peer` close: that rank may be about to say why, and is waited for if it left word.
  std::string settle_loss(std::int64_t peer, const std::string& why) noexcept;
  /// "rank 1", "ranks 0, 2"; with their machines where the run has several: "rank 3 (on node2)".
  std::string names(const std::vector<std::int64_t>& ranks) noexcept;
  /// Closes every connection of this process: waits of other ranks end.
  void close() noexcept;

 private:
  struct Store;

  void open();
  void connect_store();
  void wait_for_all(const std::string& key, const std::vector<std::int64_t>& ranks);
  bool has(const std::string& key) noexcept;
  std::string remember(const std::string& verdict, bool read) noexcept;
  std::optional<std::string> said();
  std::optional<std::string> verdict() noexcept;

  Rendezvous rendezvous_;
  std::unique_ptr<Store> store_;
  std::mutex mutex_;  // guards the two below
  std::vector<std::weak_ptr<GlooLink>> links_;
  std::optional<std::string> said_;  // the verdict, once known
};

}  // namespace kf
