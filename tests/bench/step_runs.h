#pragma once
// Training steps in other processes, and what can be seen of them from here.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/fs.h"
#include "support/process.h"

namespace kf::bench {

double median(std::vector<double> all);

/// What a process that trained has told.
struct Trained {
  std::vector<double> losses;   // of the first steps
  std::vector<double> seconds;  // of a step, without those that warm up
  double first = 0;             // from the start of the process to the end of its first step
  double memory = 0;            // the most that it held, bytes
};

/// `kf-host job.toml` in `folder`: `warmup` steps and `steps` more, a row every `interval` (which divides `warmup`).
struct OwnSteps {
  std::int64_t warmup = 0, steps = 0, interval = 1;
};
Trained run_own(const fs::path& folder, const OwnSteps& steps, const std::vector<std::string>& settings = {},
                const std::map<std::string, std::string>& environment = {});

/// A process of torch_step.py that stays, and makes steps when it is told to.
class Peer {
 public:
  /// `form`: eager or compile. Throws Code::other with what the process says where it fails.
  Peer(const fs::path& folder, const std::string& form, const std::map<std::string, std::string>& environment = {});
  Trained steps(std::int64_t number);

 private:
  double begin_ = 0;
  test::Process process_;
};

/// Whether scripts/transformers.sh has put PyTorch into .deps; what python3 needs to find it there.
bool has_peer();
std::map<std::string, std::string> peer_environment();

}  // namespace kf::bench
