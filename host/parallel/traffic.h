#pragma once
// What a rank has sent to others, and how long it waited for them: counted where calls are carried out, by name of the group.

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "parallel/group.h"

namespace kf {

enum class CallKind : std::uint8_t { sum, largest, broadcast, gather, scatter_sum, exchange, barrier, send };
inline constexpr std::array<std::string_view, 8> kCallKinds{"sum",         "largest",  "broadcast", "gather",
                                                            "scatter_sum", "exchange", "barrier",   "send"};

/// Of one name ("dp_shard"). Bytes are those of tensors that left this rank; what calls carry to tell each other apart is not among them.
struct Traffic {
  std::array<std::int64_t, kCallKinds.size()> calls{}, bytes{};  // by CallKind
  double waited = 0;                                             // seconds in which the rank's own thread stood still for them
  double took = 0;  // seconds from the begin to the end of each call, also where the rank did something else meanwhile

  std::int64_t all_bytes() const;
  Traffic& operator+=(const Traffic& other);
  /// What came since `before`.
  Traffic since(const Traffic& before) const;
};
using TrafficByGroup = std::map<std::string, Traffic>;

/// So far, of this group and of all that were made of the same ranks (Group::part), on this rank. One rank: nothing.
TrafficByGroup traffic_of(const Group& group);
/// Of all names together.
Traffic total_of(const TrafficByGroup& traffic);

/// Of a collective call.
enum class Op;
CallKind kind_of(Op op);

/// What a rank's groups write. Any thread may call any of these at any time.
class TrafficBook {
 public:
  using Clock = std::chrono::steady_clock;

  void sent(const std::string& group, CallKind kind, std::int64_t bytes);
  void took(const std::string& group, Clock::time_point begin);
  void waited(const std::string& group, Clock::time_point begin);
  TrafficByGroup read() const;

 private:
  mutable std::mutex mutex_;
  TrafficByGroup traffic_;
};

/// A kind of group that counts.
class Metered {
 public:
  explicit Metered(std::shared_ptr<TrafficBook> book) : book_(std::move(book)) {}
  virtual ~Metered() = default;
  Metered(const Metered&) = delete;
  Metered& operator=(const Metered&) = delete;
  TrafficBook& book() const { return *book_; }
  const std::shared_ptr<TrafficBook>& shared_book() const { return book_; }

 private:
  std::shared_ptr<TrafficBook> book_;
};

}  // namespace kf
