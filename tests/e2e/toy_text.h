#pragma once
// Whole runs of the real program in a folder of their own.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "config/tree/node.h"
#include "core/fs.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace kf::cases {

/// A tiny job on token files of its own, in a temporary folder; the run's folder is `run` inside it.
class Workbench {
 public:
  /// `extra` is TOML that follows the job's own tables, so it may add tables but not repeat them.
  explicit Workbench(const std::string& extra = "");

  /// kf-host job.toml ARGUMENTS...
  test::Finished run(const std::vector<std::string>& arguments = {}) const;
  /// The same in another folder below the temporary one.
  test::Finished run_in(const std::string& folder, const std::vector<std::string>& arguments) const;

  fs::path folder(const std::string& name = "run") const { return temp_ / name; }
  fs::path checkpoint(const std::string& name = "latest", const std::string& run = "run") const;
  /// Rows of metrics.jsonl: of steps, or of evaluations.
  std::vector<config::Table> steps(const std::string& run = "run") const;
  std::vector<config::Table> evals(const std::string& run = "run") const;
  /// Leaves the run as if it had been killed after it saved `step`: later checkpoints go, `latest` points back.
  void cut(std::int64_t step, const std::string& run = "run") const;
  /// Every file of the run with its size and time of change, to see that nothing was touched.
  std::string listing(const std::string& run = "run") const;

 private:
  std::vector<config::Table> rows(const std::string& run, bool eval) const;
  test::TempDir temp_;
};

double real(const config::Table& row, const std::string& key);
/// The values of one column.
std::vector<double> column(const std::vector<config::Table>& rows, const std::string& key);
/// Whether two safetensors files hold the same names and the same bits.
bool same_tensors(const fs::path& a, const fs::path& b);

}  // namespace kf::cases
