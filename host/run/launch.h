#pragma once
// This process among those that were started together.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace kf {

class Group;

/// Variables by which `kf-host --nproc N` tells its processes who they are.
inline constexpr const char* kRankVariable = "KF_RANK";
inline constexpr const char* kWorldVariable = "KF_WORLD";
inline constexpr const char* kRendezvousVariable = "KF_RENDEZVOUS";

class Launch {
 public:
  /// One process alone.
  Launch() = default;
  /// By the variables above; without them one process. Throws Code::communication for what other launchers say of more than one (torchrun,
  /// MPI's launchers, srun, jsrun, flux): each process would train alone, and nobody would notice.
  static Launch from_environment();

  /// What this process starts is no rank.
  static void hide_from_children();

  std::int64_t rank() const { return rank_; }
  std::int64_t world() const { return world_; }
  bool leads() const { return rank_ == 0; }

  /// All processes. The first call joins them and waits up to `timeout` for those that have not come; so does every later wait for another
  /// rank, in any run of this process. Throws Code::communication naming who is missing.
  std::shared_ptr<Group> all(std::chrono::milliseconds timeout);

 private:
  struct Joined {
    std::shared_ptr<Group> all;
  };
  std::int64_t rank_ = 0;
  std::int64_t world_ = 1;
  std::string rendezvous_;                                       // as Rendezvous::where
  std::shared_ptr<Joined> joined_ = std::make_shared<Joined>();  // copies are the same launch
};

}  // namespace kf
