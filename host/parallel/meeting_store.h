#pragma once
// A store at HOST:PORT in which workers meet: one process keeps it, and must outlive the meetings.

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "parallel/meeting_place.h"

namespace kf {

/// In front of every name in the store.
inline constexpr const char* kMeetingPrefix = "meeting/";

/// A thread of worker K's process counts in "worker-K" on as long as it lives. Another process is taken for gone when it has not counted
/// for kSilence; one that ends by itself says so at once.
class MeetingStore final : public MeetingPlace {
 public:
  static constexpr std::chrono::seconds kSilence{10};

  MeetingStore(const std::string& where, std::int64_t worker);
  ~MeetingStore() override;

  /// Whether any of the others lives.
  bool others_live(std::int64_t workers) const;

 private:
  struct Store;  // c10d's
  struct Seen {
    std::string text;
    std::chrono::steady_clock::time_point since;
  };

  std::optional<std::string> read(const std::string& name) const override;
  void put(const std::string& name, const std::string& text) override;
  std::string first(const std::string& name, const std::string& mine) override;
  std::vector<std::string> names() const override;
  void remove(const std::vector<std::string>& names) override;
  std::optional<std::string> process_of(std::int64_t worker) const override;

  void take_place();
  void beat();
  template <class Ask>
  auto ask(const Ask& ask) const;

  std::string where_;
  std::unique_ptr<Store> store_;
  mutable std::map<std::int64_t, Seen> seen_;  // of the others: what they counted, and since when
  std::mutex mutex_;                           // guards the two below
  std::condition_variable ends_;
  bool ended_ = false;
  std::thread beats_;  // last: it uses the others
};

/// Keeps the store at the port of this machine that `where` names. Throws Code::communication where the port is taken.
class MeetingKeeper {
 public:
  MeetingKeeper(std::string where, std::int64_t workers);
  ~MeetingKeeper();
  MeetingKeeper(const MeetingKeeper&) = delete;
  MeetingKeeper& operator=(const MeetingKeeper&) = delete;

  /// Waits for the end of all workers: those that still train need the store.
  void wait_for_workers();

 private:
  struct Kept;
  std::string where_;
  std::int64_t workers_;
  std::unique_ptr<Kept> kept_;
};

}  // namespace kf
