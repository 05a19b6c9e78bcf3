#include <algorithm>
#include <iterator>
#include <utility>

#include "app/command/checkpoint_commands.h"
#include "app/help/usage.h"
#include "core/error.h"
#include "core/text.h"

namespace kf {
namespace {

constexpr std::pair<const char*, int (*)(const Arguments&)> kCommands[] = {
    {"list", checkpoint_list},       {"info", checkpoint_info},       {"verify", checkpoint_verify},         {"diff", checkpoint_diff},
    {"average", checkpoint_average}, {"convert", checkpoint_convert}, {"merge-lora", checkpoint_merge_lora}, {"prune", checkpoint_prune},
};

}  // namespace

int checkpoint_command(const Arguments& args) {
  KF_CHECK(!args.empty(), Code::config, "{}", usage::kCheckpoint);
  const auto* const command =
      std::find_if(std::begin(kCommands), std::end(kCommands), [&](const auto& entry) { return args[0] == entry.first; });
  if (command == std::end(kCommands)) {
    std::vector<std::string> names;
    for (const auto& [name, run] : kCommands) {
      names.emplace_back(name);
    }
    const std::string near = nearest(args[0], names);
    fail(Code::config, "checkpoint has no command '{}'{}; have: {}", args[0], near.empty() ? "" : "; did you mean '" + near + "'?",
         join(names, ", "));
  }
  return command->second(Arguments(args.begin() + 1, args.end()));
}

}  // namespace kf
