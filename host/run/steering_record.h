#pragma once
// steering.jsonl in the folder of a run: what was said to it while it trained, and has changed it.
//
// {"step": 12, "time": "2026-11-28T21:47:03Z", "chunk": "ctx:set_lr_scale(0.5)"}
//
// {"step": 20, "time": "...", "reload": "[{\"asked\": \"\", \"name\": \"train.lua\", \"text\": ...}]"}: the code from which hooks were
// taken
//
// In the order in which it was done, behind the updates of these steps; a run that was rolled back has been at some of them twice.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/fs.h"
#include "core/held_file.h"
#include "train/loop/inbox.h"

namespace kf {

struct Steered {
  std::int64_t step = 0;
  RunMessage said;
};

/// The entries of a file, in order. Throws Code::config for a line that is none.
std::vector<Steered> read_steering(const fs::path& path);

class SteeringRecord {
 public:
  /// Goes on behind the first `kept` entries of the file: what comes behind them was done after the checkpoint that the run goes on from,
  /// and is removed. Nothing: the run is new, and the file of an earlier one is kept aside.
  SteeringRecord(fs::path path, std::optional<std::int64_t> kept);

  /// Throws Code::other where it cannot be written.
  void add(const Steered& entry);

 private:
  fs::path path_;
  std::optional<HeldFile> file_;  // from the first entry on
};

}  // namespace kf
