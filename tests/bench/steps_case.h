#pragma once
// A job that kf-host and PyTorch both train: the same model, first weights and batches.

#include <cstdint>
#include <string>
#include <vector>

#include "core/fs.h"

namespace kf {

struct Registries;

namespace bench {

struct StepCase {
  enum class Form { dense, experts, packed };  // experts: 8, of which a token visits 2; packed: documents of one sequence kept apart

  std::string model;
  std::int64_t dim = 0, layers = 0, heads = 0, vocab = 0, length = 0, batch = 0;
  std::string precision;  // train.mixed_precision
  Form form = Form::dense;

  const char* form_name() const;
};

inline constexpr std::int64_t kBatches = 16;  // that are there; they repeat
inline constexpr std::int64_t kChecked = 10;  // steps whose losses are compared

/// small, debug, tiny: `model` alone, or all of them where it is "".
std::vector<StepCase> step_cases(const std::string& model);

/// Writes into `folder` job.toml, text in tokens.bin, and for torch_step.py case.json, weights.safetensors and batches.bin.
void write_case(const StepCase& one, const fs::path& folder, const Registries& registries);

}  // namespace bench
}  // namespace kf
