#pragma once
// A model and its tokenizer from a checkpoint or a Hugging Face folder, for reading only.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/script/script_session.h"
#include "checkpoint/averages.h"
#include "config/schema/config.h"
#include "core/fs.h"
#include "data/tokenizer/tokenizer.h"
#include "generate/generate.h"
#include "kernels/product/product.h"
#include "metrics/eval_result.h"
#include "model/model.h"
#include "registry/registries.h"
#include "run/run_record.h"

namespace kf {

struct LoadedModel {
  config::Config config;
  std::shared_ptr<Model> model;
  std::unique_ptr<Tokenizer> tokenizer;   // null: nothing turns its ids into text
  std::unique_ptr<TokenChooser> sampler;  // generate.strategy
  PromptStyle prompts;                    // what prompts begin with
  std::vector<std::int64_t> ends;         // ids that end an answer
  bool begins_documents = false;          // of a Hugging Face folder: documents of --data begin with BOS, as its tokenizer has it
  std::string generation;                 // where `ends` and [generate] come from, where that is a Hugging Face folder: for the log
  fs::path path;                          // the step_N folder, or the Hugging Face folder
  std::optional<std::int64_t> step;       // of a checkpoint
  Products products = {};                 // how its run computed; for whoever calls the model, in a ProductsScope
};

/// What to load, and what of its settings to change.
struct InferenceRequest {
  fs::path source;
  at::Device device = at::kCPU;
  std::vector<std::string> overrides = {};  // --section.key=value
  bool with_data = false;                   // keep [data] and [eval] as they are, and insist that their files exist
  ScriptSession* script = nullptr;          // whose parts the job may name
  WeightKind weights = WeightKind::saved;   // which of a checkpoint's
  std::string tokenizer = {};               // instead of data.tokenizer_path; "bytes" for none; "" for what the checkpoint says
};

/// `source` is a checkpoint folder, a run or checkpoints folder whose latest one is meant, or a folder with a config.json (its
/// tokenizer is taken, too). Weights in fp32, evaluation mode. Throws Code::checkpoint, and Code::config for faulty overrides.
LoadedModel load_for_inference(const InferenceRequest& request, const Registries& registries);
/// The script whose parts the model of `source` needs: `given` (--script), else the copy in the run's folder where the job does not load
/// without it, else none.
RecordedScript script_for(const std::string& given, const fs::path& source);

/// The settings alone.
config::Config settings_for_inference(const InferenceRequest& request, const Registries& registries);

/// The model on the sets of `config`.eval, all of them as one. Throws Code::config where there is none.
EvalResult evaluate_loaded(const LoadedModel& loaded, const config::Config& config, at::Device device, const Registries& registries);
/// A request for this model, without prompts and options.
GenerateRequest generate_request(const LoadedModel& loaded, at::Device device);
/// Answers to texts, in their order.
std::vector<Completion> generate_loaded(const LoadedModel& loaded, const std::vector<std::string>& prompts, GenerateOptions options,
                                        at::Device device);

}  // namespace kf
