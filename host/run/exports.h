#pragma once
// A checkpoint of a run as a folder for Hugging Face's libraries.

#include "checkpoint/export/export.h"
#include "run/run_context.h"

namespace kf {

struct ExportRequest {
  fs::path checkpoint;                     // a step_N folder, or a named one
  const config::Config& config;            // of its model and tokenizer
  const Registries& registries;            // with the parts of its script
  fs::path folder;                         // that is written
  WeightKind weights = WeightKind::saved;  // which of the checkpoint's
  ExportOptions options = {};
};

/// Reads the checkpoint tensor by tensor, whatever ranks wrote it, and writes the folder whole. Adapters are merged into the weights, for
/// which, and where the checkpoint leaves frozen weights out, the model is in memory once.
Exported export_checkpoint(const ExportRequest& request);

/// The settings of a model without adapters, whose weights hold them.
config::Config without_adapter(config::Config config);

/// One line about what was written.
std::string export_text(const Exported& done, const fs::path& folder, const ExportOptions& options);

/// Throws Code::config where checkpoint.hf_export_interval asks for exports of a model that no family has, or whose family has no place
/// for some of its weights.
void check_exports(const RunContext& run);

/// What exports a checkpoint while the run is on: faults are warned of, and the run goes on.
std::function<void(const fs::path& checkpoint, const fs::path& folder)> exporter_of(const RunContext& run);

}  // namespace kf
