#include <algorithm>
#include <iostream>

#include "app/command/commands.h"
#include "app/help/completion.h"
#include "builtins/builtins.h"
#include "core/error.h"
#include "core/text.h"
#include "registry/registries.h"

namespace kf {

int completion_command(const Arguments& args) {
  const std::vector<std::string>& shells = completed_shells();
  KF_CHECK(args.size() == 1 && std::find(shells.begin(), shells.end(), args[0]) != shells.end(), Code::config,
           "usage: kf-host completion {}; other shells are not known", join(shells, "|"));
  std::cout << completion_for(args[0], native_registries().catalog());
  return 0;
}

}  // namespace kf
