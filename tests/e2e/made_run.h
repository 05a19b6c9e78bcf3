#pragma once
// Folders of runs as trainings leave them, without the training.

#include <cmath>
#include <filesystem>
#include <string>

#include "support/temp_dir.h"

namespace kf::test {

/// A row of metrics.jsonl with the numbers that every row has.
inline std::string made_row(int step, double loss) {
  const std::string at = std::to_string(step);
  return "{\"step\":" + at + ",\"loss\":" + std::to_string(loss) + ",\"grad_norm\":" + std::to_string(1 + 1.0 / step) +
         ",\"lr\":0.001,\"tokens\":" + std::to_string(step * 256) +
         ",\"tokens_per_sec\":5000.0,\"mfu\":0.4,\"memory_bytes\":1000000,\"seconds\":" + std::to_string(step * 0.05) +
         ",\"time\":" + std::to_string(1.79e9 + step) + ",\"skipped\":0,\"ce\":" + std::to_string(loss) +
         ",\"z_loss\":0.0,\"aux_loss\":0.0}\n";
}

/// `name` below `root`: a run that is complete after `steps` steps, with an evaluation every tenth. `more`: lines of its job.toml.
inline std::filesystem::path made_run(const TempDir& root, const std::string& name, int steps, const std::string& more = "") {
  std::string rows;
  for (int step = 1; step <= steps; ++step) {
    const double loss = 2 + 3 * std::exp(-step / 40.0);
    rows += made_row(step, loss);
    if (step % 10 == 0) {
      rows += "{\"step\":" + std::to_string(step) + ",\"eval\":{\"loss\":" + std::to_string(loss + 0.1) +
              ",\"perplexity\":9.0,\"tokens\":64}}\n";
    }
  }
  const std::string count = std::to_string(steps);
  root.write(name + "/metrics.jsonl", rows);
  root.write(name + "/job.toml", "[train]\nmax_steps = " + count + "\n[run]\nname = \"made\"\n" + more);
  root.write(
      name + "/run.json",
      "{\"id\": \"id-" + name + "\", \"name\": \"" + std::filesystem::path(name).filename().string() +
          "\", \"tags\": [\"made\"], \"job\": \"job.toml\", \"starts\": [{\"time\": \"2026-11-28T21:47:03Z\", \"command\": \"kf-host "
          "job.toml\", "
          "\"folder\": \"/home/me\", \"version\": \"0.1.0\", \"torch\": \"2.11.0\", \"host\": \"box\", \"device\": \"cpu\", \"pid\": 1, "
          "\"step\": 0, \"end\": \"2026-11-28T22:01:44Z\", \"status\": \"complete\", \"steps\": " +
          count + "}]}");
  return root / name;
}

}  // namespace kf::test
