#include <iostream>

#include "app/commands.h"
#include "core/error.h"
#include "registry/registries.h"

namespace kf {
namespace {

std::string type_name(config::PartField::Type type) {
  switch (type) {
    case config::PartField::Type::integer: return "int";
    case config::PartField::Type::real: return "float";
    case config::PartField::Type::boolean: return "bool";
    case config::PartField::Type::string: return "string";
    case config::PartField::Type::list: return "list";
  }
  return "";
}

void print_part(const config::PartInfo& part) {
  std::string name = "  " + part.name;
  name.resize(std::max<std::size_t>(name.size() + 1, 26), ' ');
  std::string origin = part.origin;
  origin.resize(std::max<std::size_t>(origin.size() + 1, 8), ' ');
  std::cout << name << origin << part.doc << '\n';
  for (const config::PartField& field : part.fields) {
    std::cout << "      " << field.name << " (" << type_name(field.type) << ")  " << field.doc << '\n';
  }
}

}  // namespace

int registry_command(const Arguments& args) {
  if (!args.empty() && (args[0] == "--help" || args[0] == "-h")) {
    std::cout << "usage: kf-host registry [KIND]\n\nLists the registered parts of every kind, or of one: name, origin, what it is, its own "
                 "fields.\n";
    return 0;
  }
  KF_CHECK(args.size() <= 1, Code::config, "kf-host registry takes one kind at most, got '{}'", join(args, " "));
  const config::Catalog catalog = native_registries().catalog();
  std::vector<std::string> kinds;
  for (const auto& [kind, parts] : catalog) {
    kinds.push_back(kind);
  }
  if (!args.empty() && catalog.count(args[0]) == 0) {
    const std::string near = nearest(args[0], kinds);
    fail(Code::config, "no kind '{}'{}; have: {}", args[0], near.empty() ? "" : "; did you mean '" + near + "'?", join(kinds, ", "));
  }
  for (const auto& [kind, parts] : catalog) {
    if (args.empty() || args[0] == kind) {
      std::cout << kind << '\n';
      for (const config::PartInfo& part : parts) {
        print_part(part);
      }
    }
  }
  return 0;
}

}  // namespace kf
