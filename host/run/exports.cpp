#include "run/exports.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

#include "checkpoint/huggingface/outward.h"
#include "core/error.h"
#include "core/log.h"
#include "core/plain_file.h"
#include "data/chat/chat_format.h"
#include "data/tokenizer/text_start.h"
#include "data/tokenizer/tokenizer_files.h"
#include "model/transformer/adapters.h"
#include "model/transformer/build.h"
#include "run/answer_ends.h"
#include "run/job_tokenizer.h"
#include "run/run_record.h"

namespace kf {
namespace {

constexpr const char* kTokenizerConfig = "tokenizer_config.json";

/// The files of the tokenizer that the model was trained with: the run's own copy, or where they are.
std::vector<fs::path> tokenizer_of_run(const std::optional<fs::path>& run, const config::Config& config) {
  const fs::path copy = run ? recorded_copy(*run, "tokenizer_path") : fs::path();
  const fs::path given = config.data.tokenizer_path;
  return copy.empty() ? given.empty() || !path_exists(given) ? std::vector<fs::path>() : tokenizer_files(given) : tokenizer_files(copy);
}

/// Readers of the folder begin texts as the model was trained, whatever the tokenizer's files said.
void start_as_trained(const config::DataConfig& data, const Tokenizer& tokenizer, ExportFiles& out) {
  StartedFiles started = start_texts(out.tokenizer, tokenizer, data.add_bos);
  if (started.changed.empty()) {
    return;
  }
  const std::string trained =
      format("the model was trained on texts {} BOS (data.add_bos = {})", data.add_bos ? "with" : "without", data.add_bos);
  if (started.certain) {
    log::info("export: {}, and its tokenizer's files say otherwise: in the export they say it as the model was trained", trained);
  } else {
    log::warn(
        "export: {}, and its tokenizer's files say otherwise; add_bos_token = {} in tokenizer_config.json of the export says so, which "
        "not every program follows for such files: give texts {} BOS there",
        trained, data.add_bos, data.add_bos ? "with" : "without");
  }
  out.changed = std::move(started.changed);
}

/// The template by which the model learned chats, where transformers looks for it.
void add_chat_template(const config::DataConfig& data, ExportFiles& out) {
  const FoundTemplate found = find_chat_template(data.chat_template, data.tokenizer_path);
  const auto config_file =
      std::find_if(out.tokenizer.begin(), out.tokenizer.end(), [](const fs::path& file) { return file.filename() == kTokenizerConfig; });
  std::string config = config_file != out.tokenizer.end() ? read_file(*config_file) : "";
  for (const auto* const texts : {&out.more, &out.changed}) {
    const auto given = texts->find(kTokenizerConfig);
    config = given != texts->end() ? given->second : config;
  }
  out.changed["chat_template.jinja"] = found.source;
  out.changed[kTokenizerConfig] = with_chat_template(config, found.source);
  if (!data.chat_template_args.empty()) {
    log::warn("export: the chat template is written as it is; whoever uses it gives it data.chat_template_args, too: {}",
              data.chat_template_args);
  }
}

ExportFiles files_of(const ExportRequest& request) {
  const std::optional<fs::path> run = run_folder_of(request.checkpoint);
  ExportFiles out;
  out.source = run ? recorded_source(*run) : fs::path();
  out.tokenizer = tokenizer_of_run(run, request.config);
  const std::unique_ptr<Tokenizer> tokenizer = tokenizer_of(request.config, request.registries);
  out.ends = answer_ends(request.config, tokenizer.get());
  out.bos = tokenizer != nullptr ? tokenizer->bos_id() : std::nullopt;
  if (tokenizer != nullptr && tokenizer->summary() == ByteTokenizer().summary() && out.tokenizer.empty() && out.source.empty()) {
    out.more = byte_tokenizer_files();
  }
  if (out.bos && !out.tokenizer.empty()) {
    start_as_trained(request.config.data, *tokenizer, out);
  }
  if (!request.config.data.chat_template.empty()) {
    add_chat_template(request.config.data, out);
  }
  return out;
}

}  // namespace

config::Config without_adapter(config::Config config) {
  config.adapter = {};
  return config;
}

Exported export_checkpoint(const ExportRequest& request) {
  const CheckpointReader reader(request.checkpoint);
  const config::Config plain = without_adapter(request.config);
  const std::shared_ptr<Model> shapes = build_model(plain, request.registries);
  const ExportFiles files = files_of(request);
  if (request.config.adapter.name.empty() && !reader.leaves_out()) {
    return export_model(request.folder, plain.model, *shapes, weights_in(reader, request.weights), files, request.options);
  }
  const std::shared_ptr<Model> whole = build_model(request.config, request.registries);
  materialize(*whole, at::kCPU, at::kFloat, 0, at::kFloat, [](const Parameter& p) { return needs_first_values(p); });
  reader.load_weights(*whole, {}, request.weights);
  require_values(whole->parameters());
  return export_model(request.folder, plain.model, *shapes, weights_in(merged_weights(*whole)), files, request.options);
}

std::string export_text(const Exported& done, const fs::path& folder, const ExportOptions& options) {
  return format("{}: a {} model, {} tensors in {} ({}, {} file{})", folder, done.config.family, done.tensors, options.dtype,
                human_bytes(static_cast<double>(done.shards.bytes)), done.shards.files, done.shards.files == 1 ? "" : "s");
}

void check_exports(const RunContext& run) {
  if (run.config.checkpoint.hf_export_interval > 0 && run.world.leads()) {
    try {
      const config::Config plain = without_adapter(run.config);
      const std::shared_ptr<Model> shapes = build_model(plain, run.registries);
      huggingface::outward_tensors(export_config(plain.model, model_source(run.config), "").json, *shapes);
    } catch (Error& error) {
      throw error.context("checkpoint.hf_export_interval asks for exports; set it to 0 to train without them");
    }
  }
}

std::function<void(const fs::path& checkpoint, const fs::path& folder)> exporter_of(const RunContext& run) {
  return [&run](const fs::path& checkpoint, const fs::path& folder) {
    ExportRequest request{checkpoint, run.config, run.registries, folder};
    request.options.dtype = run.config.checkpoint.export_dtype;
    const auto warn = [&](const char* message) {
      log::warn("the export into {} failed, the run goes on (kf-host export {} DIR makes it later): {}", folder, checkpoint, message);
    };
    try {
      log::info("export: {}", export_text(export_checkpoint(request), folder, request.options));
    } catch (const c10::Error& error) {
      warn(error.what_without_backtrace());
    } catch (const std::exception& error) {
      warn(error.what());
    }
  };
}

}  // namespace kf
