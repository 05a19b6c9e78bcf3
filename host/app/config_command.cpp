#include "app/config_command.h"

#include <algorithm>
#include <charconv>
#include <ostream>

#include "app/presets.h"
#include "config/emit.h"
#include "config/explain.h"
#include "config/json.h"
#include "config/layers.h"
#include "config/literal.h"
#include "config/names.h"
#include "config/unbuilt.h"
#include "core/error.h"
#include "core/text.h"

namespace kf {
namespace {

using config::Catalog;
using config::Loaded;
using config::Request;

constexpr const char* kUsage = R"(usage: kf-host config COMMAND [...] [--section.key=value ...]

  check [FILE] [--world N]     every problem of the job; its files must exist
  show [FILE] [--world N] [--format toml|json]
                               the resolved job; the TOML loads back to the same one
  explain [FILE] KEY           value, where it comes from, type, what is allowed
  diff A [B]                   keys in which two jobs differ (one: from the defaults)
  keys [PATTERN]               all settings, a section, or what matches (optim*, *lr*, warm-up)
  schema                       JSON schema for TOML editors
  new [PRESET]                 a job to start from, on standard output; presets are in configs/
  docs                         docs/config.md, on standard output
  meta                         lua/meta/kf.lua, for lua-language-server, on standard output
  api                          docs/api.md, on standard output
)";

/// A call taken apart: files and words, options of ours, and the settings' own overrides.
struct Call {
  std::vector<std::string> words;
  std::vector<std::string> overrides;
  std::optional<std::int64_t> world;
  std::optional<std::string> format;
};

std::int64_t parse_world(const std::string& text) {
  const std::optional<std::int64_t> world = config::parse_int(text);
  KF_CHECK(world && *world >= 1, Code::config, "--world {}: must be a number of ranks, 1 or more", text);
  return *world;
}

Call parse_call(const std::vector<std::string>& args) {
  Call call;
  for (std::size_t i = 1; i < args.size(); ++i) {
    const std::string& arg = args[i];
    const std::size_t equals = arg.find('=');
    const std::string name = arg.substr(0, equals);
    if (name == "--world" || name == "--format") {
      KF_CHECK(equals != std::string::npos || i + 1 < args.size(), Code::config, "{} needs a value", name);
      const std::string value = equals != std::string::npos ? arg.substr(equals + 1) : args[++i];
      if (name == "--world") {
        call.world = parse_world(value);
      } else {
        call.format = value;
      }
    } else if (arg.starts_with("-")) {
      call.overrides.push_back(arg);
    } else {
      call.words.push_back(arg);
    }
  }
  KF_CHECK(!call.format || *call.format == "toml" || *call.format == "json", Code::config, "--format {}: must be toml or json",
           call.format.value_or(""));
  return call;
}

bool is_file(const std::string& word) { return word.ends_with(".toml") || word.ends_with(".lua") || word.find('/') != std::string::npos; }

/// Loads jobs the same way for every subcommand.
class Jobs {
 public:
  Jobs(const Catalog& catalog, const RecipeReader& recipes) : catalog_(catalog), recipes_(recipes) {}

  /// An empty `file` stands for the defaults.
  Loaded load(const std::string& file, const Call& call, bool files_must_exist) {
    Request request;
    request.overrides = call.overrides;
    request.world = call.world;
    request.files_must_exist = files_must_exist;
    if (file.ends_with(".lua")) {
      KF_CHECK(recipes_, Code::config, "{}: scripts cannot be read here; give a .toml file", file);
      Recipe recipe = recipes_(file);
      request.recipe = std::move(recipe.table);
      catalog_ = std::move(recipe.catalog);
    } else {
      request.job = file;
    }
    return checked(config::load(request, catalog_));
  }

  const Catalog& catalog() const { return catalog_; }

 private:
  static Loaded checked(Loaded loaded) {
    if (!loaded.report.problems.empty()) {
      throw Error(Code::config, config::to_text(loaded.report));
    }
    return loaded;
  }

  Catalog catalog_;
  const RecipeReader& recipes_;
};

void need_words(const Call& call, std::size_t least, std::size_t most, const char* usage) {
  KF_CHECK(call.words.size() >= least && call.words.size() <= most, Code::config, "usage: kf-host config {}", usage);
}

/// No option is ignored: what a command has no use for is refused.
void check_options(const std::string& command, const Call& call) {
  KF_CHECK(!call.format || command == "show", Code::config, "--format belongs to `kf-host config show`; config {} has none", command);
  if (command == "check" || command == "show" || command == "explain" || command == "diff") {
    return;
  }
  KF_CHECK(!call.world, Code::config, "config {} reads no job, so --world means nothing here", command);
  KF_CHECK(call.overrides.empty(), Code::config, "config {} has no option '{}'", command, call.overrides.front());
}

std::string word(const Call& call, std::size_t index) { return index < call.words.size() ? call.words[index] : ""; }

/// Words behind the file are forgotten dashes: they join the options, whose reader refuses them with the rest of the job's problems.
Call with_stray_words(Call call) {
  for (std::size_t i = 1; i < call.words.size(); ++i) {
    call.overrides.push_back(call.words[i]);
  }
  return call;
}

void check(const Call& call, Jobs& jobs, std::ostream& out, const DataCheck& data) {
  const Loaded loaded = jobs.load(word(call, 0), with_stray_words(call), true);
  for (const std::string& warning : loaded.report.warnings) {
    out << "warning: " << warning << '\n';
  }
  for (const std::string& key : config::keys_without_effect(loaded)) {
    out << "note: " << key << '\n';
  }
  if (data) {
    data(loaded.config);
  }
  out << (call.words.empty() ? "the defaults" : call.words[0]) << ": no problems\n";
}

void show(const Call& call, Jobs& jobs, std::ostream& out) {
  const Loaded loaded = jobs.load(word(call, 0), with_stray_words(call), false);
  out << (call.format.value_or("toml") == "json" ? config::to_json(config::to_tree(loaded.config), config::JsonStyle::plain, 2) + "\n"
                                                 : config::to_toml(loaded.config));
}

void explain(const Call& call, Jobs& jobs, std::ostream& out) {
  constexpr const char* usage = "explain [FILE] KEY [--section.key=value ...]";
  need_words(call, 1, 2, usage);
  KF_CHECK(call.words.size() == 2 || !is_file(call.words[0]), Code::config, "which key of {}? usage: kf-host config {}", call.words[0],
           usage);
  const bool first_is_file = call.words.size() == 2 && is_file(call.words[0]);
  const std::string file = call.words.size() == 1 ? "" : call.words[first_is_file ? 0 : 1];
  const std::string key = call.words.size() == 1 ? call.words[0] : call.words[first_is_file ? 1 : 0];
  const Loaded loaded = jobs.load(file, call, false);
  out << config::explain(loaded, key, jobs.catalog());
}

void diff(const Call& call, Jobs& jobs, std::ostream& out) {
  need_words(call, 1, 2, "diff A [B] [--section.key=value ...]");
  const Loaded a = jobs.load(call.words.size() == 2 ? call.words[0] : "", {}, false);
  const Loaded b = jobs.load(call.words.back(), call, false);
  out << config::diff(a, b);
}

void make_new(const Call& call, std::ostream& out) {
  need_words(call, 0, 1, "new [PRESET]");
  out << (call.words.empty() ? starter_job() : preset_text(call.words[0]));
}

}  // namespace

int config_command(const std::vector<std::string>& args, const Catalog& catalog, std::ostream& out, const RecipeReader& recipes,
                   const DataCheck& data) {
  const std::vector<std::string> commands{"check", "show", "explain", "diff", "keys", "schema", "new", "docs", "meta", "api"};
  if (args.empty() || args[0] == "--help" || args[0] == "-h" || args[0] == "help" ||
      std::find(args.begin(), args.end(), "--help") != args.end()) {
    KF_CHECK(!args.empty(), Code::config, "{}", kUsage);
    out << kUsage;
    return 0;
  }
  const std::string& command = args[0];
  const std::string near = nearest(command, commands);
  KF_CHECK(std::find(commands.begin(), commands.end(), command) != commands.end(), Code::config, "config has no command '{}'{}; have: {}",
           command, near.empty() ? "" : "; did you mean '" + near + "'?", join(commands, ", "));
  const Call call = parse_call(args);
  check_options(command, call);
  Jobs jobs(catalog, recipes);
  if (command == "check") {
    check(call, jobs, out, data);
  } else if (command == "show") {
    show(call, jobs, out);
  } else if (command == "explain") {
    explain(call, jobs, out);
  } else if (command == "diff") {
    diff(call, jobs, out);
  } else if (command == "new") {
    make_new(call, out);
  } else if (command == "keys") {
    need_words(call, 0, 1, "keys [PATTERN]");
    const std::string table = config::keys_table(word(call, 0));
    KF_CHECK(!table.empty(), Code::config, "no setting matches '{}'; `kf-host config keys` lists all", word(call, 0));
    out << table;
  } else if (command == "schema") {
    need_words(call, 0, 0, "schema");
    out << config::to_json(config::to_schema(catalog), config::JsonStyle::plain, 2) << '\n';
  } else {
    need_words(call, 0, 0, "docs");
    out << config::to_markdown();
  }
  return 0;
}

}  // namespace kf
