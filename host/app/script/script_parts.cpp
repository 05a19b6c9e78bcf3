#include "app/script/script_parts.h"

#include "bindings/script/script.h"
#include "builtins/builtins.h"
#include "core/error.h"
#include "core/log.h"
#include "registry/registries.h"
#include "sweep/definition.h"

namespace kf {
namespace {

void print_part(std::ostream& out, const config::PartInfo& part) {
  std::string name = "  " + part.name;
  name.resize(std::max<std::size_t>(name.size() + 1, 26), ' ');
  std::string origin = part.origin;
  origin.resize(std::max<std::size_t>(origin.size() + 1, 8), ' ');
  out << name << origin << part.doc << '\n';
  for (const config::Row& field : part.fields) {
    const config::TypeRow& type = config::type_row(field.type);
    out << "      " << field.name << " (" << (type.word.empty() ? type.name : type.word) << ")  " << field.doc << '\n';
  }
}

}  // namespace

ScriptParts read_script(const fs::path& path, const std::vector<std::string>& arguments) {
  Registries registries = native_registries();
  std::optional<config::Node> table;
  const auto take_job = [&table](config::Node job) -> RunResult {
    table = table ? table : std::move(job);
    fail(Code::script, "kf.run: settings are only read here");
  };
  Script script(registries, {take_job, {}, 0, 1}, arguments);
  try {
    if (std::optional<config::Node> returned = script.run_file(path)) {
      table = std::move(returned);
    }
  } catch (const Error&) {
    if (!table) {
      throw;
    }
    log::info("{}: the job of its first kf.run is read; what the script does with the result is not", path);
  }
  if (script.sweep() != nullptr) {
    table = script.sweep()->base;  // of a sweep: the job that its trials start from
  }
  return {std::move(table), registries.catalog()};
}

void print_parts(std::ostream& out, const config::Catalog& catalog,
                 const std::function<bool(const std::string& kind, const config::PartInfo&)>& wanted) {
  for (const auto& [kind, parts] : catalog) {
    bool titled = false;
    for (const config::PartInfo& part : parts) {
      if (wanted(kind, part)) {
        if (!titled) {
          out << kind << '\n';
          titled = true;
        }
        print_part(out, part);
      }
    }
  }
}

}  // namespace kf
