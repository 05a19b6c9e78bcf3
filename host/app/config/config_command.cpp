#include "app/config/config_command.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <ostream>

#include "app/config/presets.h"
#include "app/help/man_page.h"
#include "app/help/usage.h"
#include "config/huggingface/huggingface.h"
#include "config/load/cli.h"
#include "config/load/layers.h"
#include "config/load/model_presets.h"
#include "config/load/names.h"
#include "config/rules/unbuilt.h"
#include "config/rules/unsaid.h"
#include "config/show/emit.h"
#include "config/show/explain.h"
#include "config/tree/json.h"
#include "config/tree/literal.h"
#include "core/error.h"
#include "core/fs.h"
#include "core/hub_name.h"
#include "core/text.h"
#include "metrics/names/names.h"

namespace kf {
namespace {

using config::Catalog;
using config::Loaded;
using config::Request;

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

Call parse_call(const std::vector<std::string>& given) {
  const std::vector<std::string> args = config::join_values(given);
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

/// A known model's name, or that of one on the hub, in the place of a job: the job is its model, as for the folder of one.
bool names_model(const std::string& word) {
  std::error_code ignored;
  if (fs::exists(word, ignored)) {
    return false;
  }
  const std::vector<std::string> presets = config::model_preset_names();
  return std::find(presets.begin(), presets.end(), word) != presets.end() || hub_name(word, false).has_value();
}

bool is_file(const std::string& word) { return word.ends_with(".toml") || word.ends_with(".lua") || word.find('/') != std::string::npos; }

/// Loads jobs the same way for every subcommand.
class Jobs {
 public:
  Jobs(const Catalog& catalog, const RecipeReader& recipes) : catalog_(catalog), recipes_(recipes) {}

  /// The job of a run or of a checkpoint, or the file itself; a folder of Hugging Face stays.
  static std::string file_of(const std::string& word) {
    std::error_code ignored;
    if (!fs::is_directory(word, ignored)) {
      return word;
    }
    const fs::path folder = word;
    for (const char* file : {"job.toml", "latest/job.toml", "checkpoints/latest/job.toml"}) {
      if (fs::is_regular_file(folder / file, ignored)) {
        return (folder / file).string();
      }
    }
    KF_CHECK(config::is_huggingface_folder(folder), Code::config,
             "{} is a folder without a job: give a job file, a run, a checkpoint, or a folder with a config.json", word);
    return word;
  }

  /// An empty `file` stands for the defaults.
  Loaded load(const std::string& word, const Call& call, bool files_must_exist) {
    Request request;
    request.overrides = call.overrides;
    request.world = call.world;
    request.files_must_exist = files_must_exist;
    const std::string file = file_of(word);
    std::error_code ignored;
    if (fs::is_directory(file, ignored) || names_model(file)) {
      request.overrides.insert(request.overrides.begin(), "--model.preset=" + file);
    } else if (file.ends_with(".lua")) {
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

void check(const Call& call, Jobs& jobs, std::ostream& out, const ConfigHelpers& helpers) {
  const Loaded loaded = jobs.load(word(call, 0), with_stray_words(call), true);
  for (const std::string& warning : loaded.report.warnings) {
    out << "warning: " << warning << '\n';
  }
  for (const std::string& key : config::keys_without_effect(loaded)) {
    out << "note: " << key << '\n';
  }
  for (const std::string& line : config::unsaid(loaded)) {
    out << "warning: " << line << '\n';
  }
  if (helpers.data) {
    helpers.data(loaded.config);
  }
  for (const std::string& line : helpers.memory ? helpers.memory(loaded, call.world.value_or(1)) : std::vector<std::string>()) {
    out << line << '\n';
  }
  const std::vector<std::string> refused = config::keys_refused(loaded.config);
  for (const std::string& line : refused) {
    out << "note: " << line << '\n';
  }
  out << (call.words.empty() ? "the defaults" : call.words[0])
      << (refused.empty() ? ": no problems\n" : ": no problems in the settings, but it cannot run: " + refused.front() + "\n");
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

std::string page(const std::string& name) {
  static const std::map<std::string, std::string (*)()> pages{{"", config::to_markdown},
                                                              {"presets", presets_markdown},
                                                              {"metrics", numbers_markdown},
                                                              {"unbuilt", config::unbuilt_markdown},
                                                              {"man", man_page}};
  const auto found = pages.find(name);
  KF_CHECK(found != pages.end(), Code::config, "config docs knows 'presets', 'metrics', 'unbuilt' and 'man', not '{}'", name);
  return found->second();
}

}  // namespace

int config_command(const std::vector<std::string>& args, const Catalog& catalog, std::ostream& out, const ConfigHelpers& helpers) {
  const std::vector<std::string> commands{"check", "show", "explain", "diff", "keys", "presets", "schema", "new", "docs", "meta", "api"};
  KF_CHECK(!args.empty(), Code::config, "{}", usage::kConfig);
  const std::string& command = args[0];
  const std::string near = nearest(command, commands);
  KF_CHECK(std::find(commands.begin(), commands.end(), command) != commands.end(), Code::config, "config has no command '{}'{}; have: {}",
           command, near.empty() ? "" : "; did you mean '" + near + "'?", join(commands, ", "));
  const Call call = parse_call(args);
  check_options(command, call);
  Jobs jobs(catalog, helpers.recipes);
  if (command == "check") {
    check(call, jobs, out, helpers);
  } else if (command == "show") {
    show(call, jobs, out);
  } else if (command == "explain") {
    explain(call, jobs, out);
  } else if (command == "diff") {
    diff(call, jobs, out);
  } else if (command == "new") {
    make_new(call, out);
  } else if (command == "presets") {
    need_words(call, 0, 1, "presets [PATTERN]");
    out << presets_text(word(call, 0));
  } else if (command == "keys") {
    need_words(call, 0, 1, "keys [PATTERN]");
    const std::string table = config::keys_table(word(call, 0));
    KF_CHECK(!table.empty(), Code::config, "no setting matches '{}'; `kf-host config keys` lists all", word(call, 0));
    out << table;
  } else if (command == "schema") {
    need_words(call, 0, 0, "schema");
    out << config::to_json(config::to_schema(catalog), config::JsonStyle::plain, 2) << '\n';
  } else {
    need_words(call, 0, 1, "docs [presets|metrics|unbuilt|man]");
    out << page(word(call, 0));
  }
  return 0;
}

}  // namespace kf
