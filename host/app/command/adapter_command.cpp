#include <iostream>

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

}  // namespace

int adapter_command(const Arguments& args) {
  const OptionList list = parse_options(args, {"kf-host adapter", {"--script"}, {"--merged"}, false});
  KF_CHECK(list.words.size() == 3 && list.words[0] == "export", Code::config, "{}", usage::kAdapter);
  const fs::path source = list.words[1];
  const fs::path folder = plain_folder(list.words[2]);
  const RecordedScript own = script_for(list.last("--script"), source);
  ScriptSession script(own.path, own.arguments, own.copies);
  const LoadedModel loaded = load_with_adapter(source, script);
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
