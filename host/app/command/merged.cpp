#include "app/command/merged.h"

#include <map>

#include "app/command/checkpoint_commands.h"
#include "app/help/usage.h"
#include "app/line/option_list.h"
#include "checkpoint/files/weights.h"
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
fs::path plain_folder(const std::string& given) {
  const fs::path folder = fs::path(given).lexically_normal();
  return folder.has_filename() ? folder : folder.parent_path();
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
  CheckpointOptions options;
  options.dir = folder.has_parent_path() ? folder.parent_path() : fs::path(".");
  CheckpointManager checkpoints(std::move(options));
  OneRank alone;
  CheckpointWriter(checkpoints).save(state, *whole, *none, alone, folder.filename().string());
}

int checkpoint_merge_lora(const Arguments& args) {
  const OptionList list = parse_options(args, {"kf-host checkpoint merge-lora", {"--script"}, {}, false});
  KF_CHECK(list.words.size() == 2, Code::config, "what, and where to: CHECKPOINT FOLDER\n{}", usage::kCheckpoint);
  const fs::path folder = plain_folder(list.words[1]);
  const RecordedScript own = script_for(list.last("--script"), list.words[0]);
  ScriptSession script(own.path, own.arguments, own.copies);
  const LoadedModel loaded = load_with_adapter(list.words[0], script);
  write_merged(folder, loaded, script.registries());
  std::cout << folder.string() << ": weights with the adapter in them, of " << loaded.path.string() << '\n';
  return 0;
}

}  // namespace kf
