#include "app/command/merged.h"

#include <map>

#include "app/command/checkpoint_commands.h"
#include "app/help/usage.h"
#include "app/line/option_list.h"
#include "checkpoint/files/weights.h"
#include "checkpoint/files/written_folder.h"
#include "checkpoint/manager.h"
#include "checkpoint/reader.h"
#include "checkpoint/writer.h"
#include "config/show/emit.h"
#include "core/error.h"
#include "model/transformer/adapters.h"
#include "model/transformer/build.h"
#include "parallel/one_rank.h"
#include "run/exports.h"
#include "run/resume.h"

#include <iostream>

namespace kf {
namespace {

/// Of the folder's name nothing is asked that a file system does not ask: no run will look for it among its own.
void write_checkpoint(const fs::path& folder, const CheckpointState& state, Model& model, const Optimizer& optimizer) {
  constexpr const char* kName = "merged";
  try {
    fs::create_directories(folder.parent_path());
    remove_abandoned(folder.parent_path(), folder.filename().string());
    PendingFolder pending(folder);
    CheckpointOptions options;
    options.dir = pending.path();
    CheckpointManager checkpoints(std::move(options));
    OneRank alone;
    CheckpointWriter(checkpoints).save(state, model, optimizer, alone, kName);
    fs::rename(pending.path() / kName, folder);
    sync_path(folder.parent_path());
  } catch (const fs::filesystem_error& fault) {
    fail(Code::checkpoint, "cannot write {}: {}; name a folder elsewhere", folder, fault.code().message());
  }
}

}  // namespace

fs::path free_folder(const fs::path& given) {
  fs::path folder = folder_named(given);
  std::error_code error;
  KF_CHECK(!fs::exists(fs::symlink_status(folder, error)), Code::checkpoint, "{} exists; choose another name, or remove it", folder);
  return folder;
}

LoadedModel load_with_adapter(const fs::path& source, ScriptSession& script) {
  InferenceRequest request{source};
  request.script = &script;
  LoadedModel loaded = load_for_inference(request, script.registries());
  KF_CHECK(!loaded.config.adapter.name.empty(), Code::config, "{} has no adapter (adapter.name)", loaded.path);
  return loaded;
}

void write_merged(const fs::path& folder, const LoadedModel& loaded, const Registries& registries) {
  const config::Config config = without_adapter(loaded.config);
  const std::shared_ptr<Model> whole = build_model(config, registries);
  materialize(*whole, at::kCPU, at::kFloat, 0);
  NamedTensors tensors;
  std::map<std::string, at::Tensor> by_name;
  for (auto& [name, tensor] : merged_weights(*loaded.model)) {
    tensors.names.push_back(name);
    by_name[name] = std::move(tensor);
  }
  tensors.get = [&by_name](const std::string& name) { return by_name.at(name); };
  load_weights_from(tensors, loaded.path, *whole);

  const CheckpointState trained = CheckpointReader(loaded.path).state();
  CheckpointState state;
  state.run = trained.run;
  state.finished = trained.finished;
  state.data_fingerprint = trained.data_fingerprint;
  state.folder = trained.folder;
  state.max_steps = trained.max_steps;
  state.job = config::Node(job_values(config));
  state.job_toml = config::to_toml(config);
  const std::unique_ptr<Optimizer> none = make_part(registries.optimizer, "sgdm", config, registries, std::vector<ParamGroup>());
  write_checkpoint(folder, state, *whole, *none);
}

int checkpoint_merge_lora(const Arguments& args) {
  const OptionList list = parse_options(args, {"kf-host checkpoint merge-lora", {"--script"}, {}, false});
  KF_CHECK(list.words.size() == 2, Code::config, "what, and where to: CHECKPOINT FOLDER\n{}", usage::kCheckpoint);
  const fs::path folder = free_folder(list.words[1]);
  const RecordedScript own = script_for(list.last("--script"), list.words[0]);
  ScriptSession script(own.path, own.arguments, own.copies);
  const LoadedModel loaded = load_with_adapter(list.words[0], script);
  write_merged(folder, loaded, script.registries());
  std::cout << list.words[1] << ": weights with the adapter in them, of " << loaded.path.string() << '\n';
  return 0;
}

}  // namespace kf
