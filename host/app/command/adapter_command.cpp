#include <iostream>

#include "app/command/adapter_export.h"
#include "app/command/commands.h"
#include "app/command/merged.h"
#include "app/help/usage.h"
#include "app/line/option_list.h"
#include "checkpoint/peft.h"
#include "checkpoint/reader.h"
#include "core/error.h"

namespace kf {
namespace {

/// checkpoint.init_from of the job that trained the adapter, "" without one.
std::string base_of(const fs::path& checkpoint) {
  const CheckpointState state = CheckpointReader(checkpoint).state();
  const config::Node* const node = state.job.table() != nullptr ? state.job.table()->find("checkpoint.init_from") : nullptr;
  const auto* const text = node != nullptr ? std::get_if<std::string>(&node->value) : nullptr;
  return text != nullptr ? *text : "";
}

int export_with(const fs::path& source, const fs::path& given, const std::string& script_file, bool merged) {
  const fs::path folder = merged ? free_folder(given) : given;  // before a model is read
  const RecordedScript own = script_for(script_file, source);
  ScriptSession script(own.path, own.arguments, own.copies);
  const LoadedModel loaded = load_with_adapter(source, script);
  if (merged) {
    write_merged(folder, loaded, script.registries());
  } else {
    write_peft(folder, *loaded.model, loaded.config.adapter, base_of(loaded.path));
  }
  std::cout << given.string() << ": " << (merged ? "weights with the adapter in them" : "the adapter, for PEFT") << ", of "
            << loaded.path.string() << '\n';
  return 0;
}

}  // namespace

int export_adapter(const fs::path& source, const fs::path& folder, const std::string& script) {
  return export_with(source, folder, script, /*merged=*/false);
}

int adapter_command(const Arguments& args) {
  const OptionList list = parse_options(args, {"kf-host adapter", {"--script"}, {"--merged"}, false});
  KF_CHECK(list.words.size() == 3 && list.words[0] == "export", Code::config, "{}", usage::kAdapter);
  return export_with(list.words[1], list.words[2], list.last("--script"), list.has("--merged"));
}

}  // namespace kf
