#pragma once
// Messages between the ranks of a group over Gloo, as c10d has it. Only bytes, by tag: what they mean is C10dGroup's.
//
// Why not Gloo's own collectives: its sums depend on the length of the tensor (rings begin at another rank for every segment) and round
// bfloat16 at each hop; a message that is longer than expected ends the process from one of Gloo's threads; and an error does not say whose
// connection it was. A receive names its rank.

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>

namespace c10d {
class ProcessGroupGloo;
class Store;
}  // namespace c10d

namespace kf {

/// A message that did not get through. Not an Error: who catches it knows more and says it.
struct LinkFault {
  std::int64_t peer = 0;  // rank of the group
  bool timed_out = false;
  std::string text;  // Gloo's words
};

/// A message on its way.
struct Message;

/// Connections of a rank to all others of its group. Any thread may call any of these at any time.
class GlooLink {
 public:
  using Clock = std::chrono::steady_clock;

  /// Connects; all ranks do at the same time. `address`: this machine's, or empty for what its host name is.
  GlooLink(const c10::intrusive_ptr<c10d::Store>& store, std::int64_t rank, std::int64_t size, std::chrono::milliseconds timeout,
           const std::string& address);
  ~GlooLink();
  GlooLink(const GlooLink&) = delete;
  GlooLink& operator=(const GlooLink&) = delete;

  /// Begin; nullptr for an empty tensor, of which nothing travels. The tensor is kept until the message has been waited for. Messages of
  /// one direction with the same tag arrive in order; those with different tags do not wait for each other. A message must have the length
  /// that its receiver expects: tags have to see to that. Throw LinkFault.
  std::shared_ptr<Message> send(const at::Tensor& t, std::int64_t to, int tag);
  std::shared_ptr<Message> receive(const at::Tensor& t, std::int64_t from, int tag);
  /// Throws LinkFault.
  void wait(const std::shared_ptr<Message>& message, Clock::time_point deadline);

  /// Ends all waits here (LinkFault) and all of the peers'.
  void close() noexcept;

 private:
  std::shared_ptr<Message> begin(const at::Tensor& t, std::int64_t peer, int tag, bool sends);

  std::mutex mutex_;                                 // guards the two below; never held in a wait
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo_;  // null: closed
  std::set<std::shared_ptr<Message>> under_way_;
};

}  // namespace kf
