// Any text as a job and any lines as a command line: no crash, no hang, and what is accepted survives being written down.
// An input is TOML, then, after a line "%%", one command-line argument a line.

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "config/load/load.h"
#include "config/load/toml.h"
#include "config/show/emit.h"
#include "config/show/explain.h"
#include "config/tree/json.h"
#include "core/text.h"
#include "unit/config/catalog.h"

namespace {

using namespace kf;

const config::Catalog& catalog() {
  static const config::Catalog all = test::reference_catalog();
  return all;
}

config::Loaded load(const std::string& toml, const std::vector<std::string>& arguments) {
  config::Report report;
  config::Request request;
  request.overrides = arguments;
  request.files_must_exist = false;
  request.world = 4;
  if (std::optional<config::Table> table = config::parse_toml(toml, "fuzz.toml", config::Origin::Kind::toml, report)) {
    table->erase("extends");  // the input names no files
    request.recipe = config::Node(std::move(*table));
  }
  config::Loaded loaded = config::load(request, catalog());
  for (config::Problem& problem : report.problems) {
    loaded.report.problems.push_back(std::move(problem));
  }
  return loaded;
}

void require(bool holds, const char* what, const std::string& detail) {
  if (!holds) {
    std::fprintf(stderr, "%s\n%s\n", what, detail.c_str());
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = input.find("%%\n");
  const std::string toml = input.substr(0, cut);
  const std::vector<std::string> arguments = cut == std::string::npos ? std::vector<std::string>() : split(input.substr(cut + 3), '\n');
  const config::Loaded loaded = load(toml, arguments);
  if (!loaded.report.problems.empty()) {
    require(is_utf8(config::to_text(loaded.report)) || !is_utf8(input), "the report is not UTF-8", config::to_text(loaded.report));
    return 0;
  }
  const std::string snapshot = config::to_toml(loaded.config);
  const config::Loaded again = load(snapshot, {});
  require(again.report.problems.empty(), "the snapshot is refused", snapshot + config::to_text(again.report));
  require(config::to_toml(again.config) == snapshot, "the snapshot reads back differently", snapshot);
  config::to_json(config::to_tree(loaded.config));
  config::explain(loaded, "optimizer.lr", catalog());
  return 0;
}
