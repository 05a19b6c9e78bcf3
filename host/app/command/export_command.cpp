#include <initializer_list>
#include <iostream>

#include "app/command/adapter_export.h"
#include "app/command/commands.h"
#include "app/command/export_gguf.h"
#include "app/help/usage.h"
#include "app/line/option_list.h"
#include "app/script/inference.h"
#include "checkpoint/gguf/file.h"
#include "checkpoint/reader.h"
#include "config/huggingface/huggingface.h"
#include "core/error.h"
#include "run/exports.h"

namespace kf {
namespace {

/// checkpoint.export_dtype of the job that wrote the checkpoint.
std::string dtype_of_job(const fs::path& checkpoint) {
  const CheckpointState state = CheckpointReader(checkpoint).state();
  const config::Node* const node = state.job.table() != nullptr ? state.job.table()->find("checkpoint.export_dtype") : nullptr;
  const auto* const text = node != nullptr ? std::get_if<std::string>(&node->value) : nullptr;
  return text != nullptr ? *text : ExportOptions().dtype;
}

ExportOptions options_of(const OptionList& list, const fs::path& checkpoint) {
  ExportOptions out;
  out.dtype = list.has("--dtype") ? list.last("--dtype") : dtype_of_job(checkpoint);
  check_word("--dtype", out.dtype, {"float32", "bfloat16", "float16"});
  out.family = list.last("--family");
  if (list.has("--max-shard-size")) {
    out.max_shard_bytes = bytes_of(list.last("--max-shard-size"), "--max-shard-size");
  }
  return out;
}

/// Options that mean nothing here.
void refuse(const OptionList& list, std::initializer_list<const char*> options, const char* why) {
  for (const char* option : options) {
    KF_CHECK(!list.has(option), Code::config, "{} has no meaning {}", option, why);
  }
}

WeightKind kind_of(const OptionList& list) {
  return weight_kind_named(list.has("--weights") ? list.last("--weights") : "saved", "--weights");
}

/// A file for llama.cpp.
int export_file(const OptionList& list) {
  refuse(list, {"--family", "--max-shard-size", "--adapter"}, "for a .gguf file");
  const fs::path source = list.words[0], file = gguf::target_of(list.words[1]);
  const RecordedScript own = script_for(list.last("--script"), source);
  ScriptSession script(own.path, own.arguments, own.copies);
  InferenceRequest request{source};
  request.script = &script;
  request.weights = kind_of(list);
  request.tokenizer = list.last("--tokenizer");
  const LoadedModel loaded = load_for_inference(request, script.registries());
  export_gguf(loaded, file, list.last("--dtype"));
  std::cout << list.words[1] << ": a model for llama.cpp, of " << loaded.path.string() << '\n';
  return 0;
}

}  // namespace

int export_command(const Arguments& args) {
  const OptionList list = parse_options(
      args, {"kf-host export", {"--dtype", "--family", "--weights", "--max-shard-size", "--script", "--tokenizer"}, {"--adapter"}, false});
  KF_CHECK(list.words.size() == 2, Code::config, "{}", usage::kExport);
  const fs::path source = list.words[0], folder = list.words[1];
  if (folder.extension() == ".gguf") {
    return export_file(list);
  }
  refuse(list, {"--tokenizer"}, "for a folder, which gets the tokenizer's files as they are");
  if (list.has("--adapter")) {
    refuse(list, {"--dtype", "--family", "--weights", "--max-shard-size"},
           "with --adapter, which writes what the adapter holds, in float32");
    return export_adapter(source, folder, list.last("--script"));
  }
  KF_CHECK(!config::is_huggingface_folder(source), Code::config, "{} is a folder of Hugging Face's already; give a checkpoint or a run",
           source);
  const fs::path checkpoint = find_checkpoint(source);
  const RecordedScript own = script_for(list.last("--script"), source);
  ScriptSession script(own.path, own.arguments, own.copies);
  InferenceRequest asked{checkpoint};
  asked.script = &script;
  const config::Config config = settings_for_inference(asked, script.registries());
  if (script.has_script()) {
    script.begin(config);
  }
  ExportRequest request{checkpoint, config, script.registries(), folder};
  request.weights = kind_of(list);
  request.options = options_of(list, checkpoint);
  const Exported done = export_checkpoint(request);
  std::cout << export_text(done, folder, request.options) << ", of " << checkpoint.string() << '\n';
  if (!done.config.lost.empty()) {
    std::cout << "  config.json does not say, as its family has no key for it, what training alone reads: " << join(done.config.lost, ", ")
              << '\n';
  }
  return 0;
}

}  // namespace kf
