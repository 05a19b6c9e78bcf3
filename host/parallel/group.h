#pragma once
// Ranks that act together: the one interface of everything that crosses a rank's border.
//
// Differences from a plain list of collectives, and why:
// - Every call has one checked description (`Call`), which implementations get; so all kinds refuse the same mistakes with the same words,
// and
//   calls that do not match are told apart from calls that are slow.
// - The order of sums is part of the contract (below): a test on threads has the bits of a run of processes.
// - Parts may be uneven: by `even_rows`, or by rows that the caller names.
// - `begin_*` gives a Pending: prefetching weights and reducing gradients behind a backward need it, and a pipeline or a ring deadlocks
//   without it (each rank must have begun to send before it waits to receive).
// - `gathered`, `scattered` and `exchanged` return their result: one rank then copies nothing.
// - `part` makes smaller groups, so meshes are built alike on one rank, on threads and on processes.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/pending.h"
#include "parallel/rows.h"

namespace at {
class Tensor;
}

namespace kf {

struct Call;

/// Ranks that act together. One rank: every call is the identity, so no caller asks how many there are.
///
/// All ranks make the same calls in the same order (send and receive: the two that they are between, in the order of that direction). A
/// group serves one thread at a time. Tensors are contiguous, on the group's device, and of the same type and shape on all ranks where
/// nothing else is said; they may be empty. No call is seen by autograd. Unless one throws, which ends the group (every later call throws
/// the same), all ranks get the same bits, whatever the timing.
///
/// Sums run in order of ranks, ((r0 + r1) + r2) + ..., each element by itself; bfloat16 and float16 are added in float32 and rounded once.
/// (A group over NCCL cannot promise this order; it promises the same bits on all ranks, and in every run of the same machines.)
class Group {
 public:
  /// `ranks`: the ranks of the world, ascending, by rank of the group. `name` is for messages: "dp_shard".
  Group(std::string name, std::vector<std::int64_t> ranks, std::int64_t rank);
  virtual ~Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  const std::string& name() const { return name_; }
  std::int64_t rank() const { return rank_; }
  std::int64_t size() const { return static_cast<std::int64_t>(ranks_.size()); }
  /// Ranks of the world, by rank of the group.
  const std::vector<std::int64_t>& ranks() const { return ranks_; }

  /// t becomes the sum over ranks. Not of bool: `largest` is "any".
  void sum(const at::Tensor& t);
  /// t becomes the largest over ranks, NaN where any has one; of bool: whether any is true.
  void largest(const at::Tensor& t);
  /// t becomes what it is on `from`.
  void broadcast(const at::Tensor& t, std::int64_t from);
  /// whole (R, ...) becomes the parts (rows[rank], ...) one after the other, in order of ranks. No `rows`: even_rows(R, size). `part` may
  /// be its own place in `whole`.
  void gather(const at::Tensor& whole, const at::Tensor& part, const std::vector<std::int64_t>& rows = {});
  /// The reverse: part (rows[rank], ...) becomes its rows of the sum of whole (R, ...) over ranks. `part` may be its own place in `whole`,
  /// whose other rows keep their values.
  void scatter_sum(const at::Tensor& part, const at::Tensor& whole, const std::vector<std::int64_t>& rows = {});
  /// The first splits.sent[0] rows of `from` go to rank 0, the next to rank 1, ...; `to` becomes what came, in order of ranks. What a rank
  /// sends to another is what that one receives: see `agree`. `to` and `from` share no memory.
  void exchange(const at::Tensor& to, const at::Tensor& from, const Splits& splits);
  /// To and from another rank of the group. A send may wait until it is received.
  void send(const at::Tensor& t, std::int64_t to);
  void receive(const at::Tensor& t, std::int64_t from);
  /// What every rank tells, by rank: decisions, messages. Any length, any bytes.
  std::vector<std::string> tell(const std::string& mine);
  /// Returns when all ranks have called it.
  void barrier();

  /// The same calls, begun: they run in the order in which they were begun, among each other and with the calls above.
  Pending begin_sum(const at::Tensor& t);
  Pending begin_gather(const at::Tensor& whole, const at::Tensor& part, const std::vector<std::int64_t>& rows = {});
  Pending begin_scatter_sum(const at::Tensor& part, const at::Tensor& whole, const std::vector<std::int64_t>& rows = {});
  Pending begin_exchange(const at::Tensor& to, const at::Tensor& from, const Splits& splits);
  /// These two need not keep to that order: they run beside the other calls.
  Pending begin_send(const at::Tensor& t, std::int64_t to);
  Pending begin_receive(const at::Tensor& t, std::int64_t from);

  /// gather into a new tensor of `length` rows; on one rank `part` itself.
  at::Tensor gathered(const at::Tensor& part, std::int64_t length);
  /// scatter_sum into a new tensor; on one rank `whole` itself.
  at::Tensor scattered(const at::Tensor& whole);
  /// exchange into a new tensor; on one rank `from` itself.
  at::Tensor exchanged(const at::Tensor& from, const Splits& splits);
  /// Tells every rank how many rows it will get, which only the sender knows: one exchange of numbers on the host.
  virtual Splits agree(const std::vector<std::int64_t>& sent);

  /// The group of some ranks of this one (ascending, this rank among them), with a communicator of its own, so that its calls may be made
  /// beside this group's. Called by those ranks alone; a second group of the same name and ranks is another one. One rank gives a OneRank.
  std::unique_ptr<Group> part(const std::string& name, const std::vector<std::int64_t>& ranks);

  /// This rank gives up: `why` (an error's message) is what the waits of all other ranks throw, in this group and in all that were made of
  /// the same ranks. No more calls. Throws nothing.
  virtual void end(std::string_view why) noexcept = 0;

 protected:
  /// Begins a call that has been checked.
  virtual Pending start(Call call) = 0;
  /// The call from begin to end.
  virtual void run(Call call);
  virtual Pending start_send(const at::Tensor& t, std::int64_t to) = 0;
  virtual Pending start_receive(const at::Tensor& t, std::int64_t from) = 0;
  /// `ranks`: ranks of the world, two or more; `rank`: this one among them. `key` is another one for every group of these ranks.
  virtual std::unique_ptr<Group> make_part(const std::string& name, const std::string& key, std::vector<std::int64_t> ranks,
                                           std::int64_t rank) = 0;

 private:
  std::string name_;
  std::vector<std::int64_t> ranks_;
  std::int64_t rank_;
  std::vector<std::string> parts_;  // keys of the groups made of this one
};

}  // namespace kf
