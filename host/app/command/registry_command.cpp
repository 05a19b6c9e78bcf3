#include <unistd.h>

#include <iostream>
#include <sstream>

#include "app/command/commands.h"
#include "app/script/script_parts.h"
#include "builtins/builtins.h"
#include "core/error.h"
#include "core/wrap.h"
#include "registry/registries.h"

namespace kf {
namespace {

void check_kind(const std::string& kind, const config::Catalog& catalog) {
  std::vector<std::string> kinds;
  for (const auto& [name, parts] : catalog) {
    kinds.push_back(name);
  }
  const std::string near = nearest(kind, kinds);
  KF_CHECK(catalog.count(kind) != 0, Code::config, "no kind '{}'{}; have: {}", kind, near.empty() ? "" : "; did you mean '" + near + "'?",
           join(kinds, ", "));
}

}  // namespace

int registry_command(const Arguments& args) {
  std::string script;
  std::string chosen;
  for (const std::string& word : args) {
    std::string& place = word.ends_with(".lua") ? script : chosen;
    KF_CHECK(place.empty(), Code::config, "kf-host registry takes one kind and one script at most, got '{}'", join(args, " "));
    place = word;
  }
  const config::Catalog catalog = script.empty() ? native_registries().catalog() : read_script(script).catalog;
  if (!chosen.empty()) {
    check_kind(chosen, catalog);
  }
  std::ostringstream list;
  for (const auto& [kind, parts] : catalog) {
    if (!chosen.empty() && chosen != kind) {
      continue;
    }
    if (parts.empty()) {
      list << kind << '\n';
    }
    print_parts(list, {{kind, parts}}, [](const std::string&, const config::PartInfo&) { return true; });
  }
  std::cout << (terminal_columns(STDOUT_FILENO) > 0 ? folded(list.str()) : list.str());  // whole lines for grep
  return 0;
}

}  // namespace kf
