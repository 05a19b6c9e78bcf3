#pragma once
// The profile of a few steps: a trace, where the time goes, what memory is held for.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "core/fs.h"
#include "model/model.h"
#include "optim/optimizer.h"
#include "parallel/world.h"

namespace kf {

struct ProfileOptions {
  std::int64_t first = 1;  // profiled step, as the log counts them,
  std::int64_t end = 2;    // and the first one behind them
  fs::path folder;         // of the files
  at::Device device = at::kCPU;
  World world = {};
  bool prints = false;  // the leader writes its tables to standard output, too
};

/// The file of this rank with `ending` ("json", "txt") in the folder.
fs::path profile_file(const ProfileOptions& options, const char* ending);

/// Writes steps_FIRST_to_LAST.rank_N.json, which grows with each step, and .txt at the end. A file that cannot be written ends the profile
/// with a warning, not the run. Nothing is recorded outside of its steps.
class Profile {
 public:
  /// What it is given outlives it.
  Profile(ProfileOptions options, Model& model, Optimizer& optimizer);
  /// Ends what is open; says so where no step was profiled.
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  /// Whether step `step` is one of those that are profiled.
  bool covers(std::int64_t step) const { return step >= options_.first && step < options_.end && !over_; }
  void micro_ended();

  /// A step, for as long as this exists. All ranks begin it.
  class Step {
   public:
    /// `profile`: null where there is none.
    Step(Profile* profile, std::int64_t step) : profile_(profile != nullptr && profile->covers(step) ? profile : nullptr) {
      if (profile_ != nullptr) {
        profile_->begin(step);
      }
    }
    ~Step() {
      if (profile_ != nullptr) {
        profile_->end();
      }
    }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

   private:
    Profile* profile_;
  };

 private:
  struct Window;
  void begin(std::int64_t step);
  void end() noexcept;
  void finish() noexcept;

  ProfileOptions options_;
  Model& model_;
  Optimizer& optimizer_;
  std::unique_ptr<Window> window_;  // from the first profiled step to the last one
  bool over_ = false;
};

}  // namespace kf
