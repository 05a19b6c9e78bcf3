#include <iostream>
#include <map>

#include "app/command/commands.h"
#include "app/help/usage.h"
#include "app/line/option_list.h"
#include "app/script/inference.h"
#include "checkpoint/files/weights.h"
#include "checkpoint/manager.h"
#include "checkpoint/peft.h"
#include "checkpoint/reader.h"
#include "checkpoint/writer.h"
#include "config/show/emit.h"
#include "core/error.h"
#include "model/transformer/adapters.h"
#include "model/transformer/build.h"
#include "parallel/one_rank.h"
#include "run/resume.h"

namespace kf {
namespace {

/// Settings of a model without adapters, whose weights hold them.
config::Config without_adapter(config::Config config) {
  config.adapter = {};
  return config;
}

/// A checkpoint of the merged model: without an optimizer's state, so that runs start from it (checkpoint.init_from) and none goes on.
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

/// checkpoint.init_from of the job that trained the adapter, "" without one.
std::string base_of(const fs::path& checkpoint) {
  const CheckpointState state = CheckpointReader(checkpoint).state();
  const config::Node* const node = state.job.table() != nullptr ? state.job.table()->find("checkpoint.init_from") : nullptr;
  const auto* const text = node != nullptr ? std::get_if<std::string>(&node->value) : nullptr;
  return text != nullptr ? *text : "";
}

}  // namespace

int adapter_command(const Arguments& args) {
  const OptionList list = parse_options(args, {"kf-host adapter", {"--script"}, {"--merged"}, false});
  KF_CHECK(list.words.size() == 3 && list.words[0] == "export", Code::config, "{}", usage::kAdapter);
  const fs::path source = list.words[1];
  fs::path folder = fs::path(list.words[2]).lexically_normal();
  folder = folder.has_filename() ? folder : folder.parent_path();
  const RecordedScript own = script_for(list.last("--script"), source);
  ScriptSession script(own.path, own.arguments, own.copies);
  InferenceRequest request{source};
  request.script = &script;
  const LoadedModel loaded = load_for_inference(request, script.registries());
  KF_CHECK(!loaded.config.adapter.name.empty(), Code::config, "{} has no adapter (adapter.name)", loaded.path);
  if (list.has("--merged")) {
    write_merged(folder, loaded, script.registries());
  } else {
    write_peft(folder, *loaded.model, loaded.config.adapter, base_of(loaded.path));
  }
  std::cout << folder.string() << ": " << (list.has("--merged") ? "weights with the adapter in them" : "the adapter, for PEFT") << ", of "
            << loaded.path.string() << '\n';
  return 0;
}

}  // namespace kf
