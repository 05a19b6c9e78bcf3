#include "run/hook_reload.h"

#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <utility>

#include "attach/frame.h"
#include "bindings/script/reload_guard.h"
#include "bindings/script/script.h"
#include "bindings/script/show_world.h"
#include "bindings/vm/output.h"
#include "builtins/builtins.h"
#include "config/tree/json.h"
#include "core/error.h"
#include "core/scratch_folder.h"
#include "run/resume.h"
#include "run/run_record.h"

namespace kf {
namespace {

using config::Array;
using config::JsonStyle;
using config::Node;
using config::Table;

/// [{"asked": "MODULE", "name": "parts/wave.lua", "text": "..."}, ...], the script first.
std::string to_json(const std::vector<CodeFile>& code) {
  Array out;
  for (const CodeFile& file : code) {
    Table one;
    one["asked"] = Node(file.asked);
    one["name"] = Node(file.name);
    one["text"] = Node(file.text);
    out.emplace_back(std::move(one));
  }
  return config::to_json(Node(std::move(out)), JsonStyle::exact);
}

/// Writes them into the folder; files by how they are asked for.
std::map<std::string, fs::path> files_in(const fs::path& folder, const std::string& code) {
  const Node node = config::parse_json(code, "the code of a reload", JsonStyle::exact);
  std::map<std::string, fs::path> out;
  KF_CHECK(node.array() != nullptr, Code::config, "the code of a reload is no list");
  for (const Node& file : *node.array()) {
    const auto text = [&file](const char* key) {
      const Node* const value = file.table() != nullptr ? file.table()->find(key) : nullptr;
      const auto* const found = value != nullptr ? std::get_if<std::string>(&value->value) : nullptr;
      KF_CHECK(found != nullptr, Code::config, "a file in the code of a reload has no '{}'", key);
      return *found;
    };
    const fs::path path = folder / format("{}", out.size()) / fs::path(text("name")).filename();
    fs::create_directories(path.parent_path());
    write_file_atomic(path, text("text"));
    out[text("asked")] = path;
  }
  KF_CHECK(out.contains(""), Code::config, "the code of a reload lacks the script");
  return out;
}

/// "a, b"
std::string names_text(const std::vector<std::string>& names) { return names.empty() ? "none" : join(names, ", "); }

/// Whether a difference is about hooks alone.
bool is_of_hooks(const Difference& d) { return d.key == "hooks" || d.key.starts_with("hook."); }

/// What the script registers besides hooks: these parts stay as the run began with them.
std::vector<std::string> other_parts(const Registries& registries) {
  std::vector<std::string> out;
  for (const auto& [kind, parts] : registries.catalog()) {
    for (const config::PartInfo& part : parts) {
      if (part.origin != "native" && kind != "hook") {
        out.push_back(kind + " '" + part.name + "'");
      }
    }
  }
  return out;
}

}  // namespace

/// One reading of the script, with all that its hooks need.
struct HookReload::Reading {
  Registries registries = native_registries();
  std::optional<ScratchFolder> folder;  // of code that is repeated
  std::unique_ptr<Script> script;
  std::unique_ptr<config::Loaded> loaded;
  std::unique_ptr<Script::RunScope> scope;
  std::vector<std::unique_ptr<Hook>> hooks;
  bool is_made = false;  // the hooks
  std::string printed;
  std::vector<CodeFile> code;  // as it was read
};

HookReload::HookReload(const RunContext& run) : run_(run) {}
HookReload::~HookReload() = default;

std::string HookReload::code() const { return now_ ? to_json(now_->code) : ""; }

std::vector<CodeFile> HookReload::taken() const { return now_ ? now_->code : std::vector<CodeFile>(); }

std::vector<fs::path> HookReload::files() const {
  std::vector<fs::path> out;
  for (const CodeFile& file : now_ && !now_->folder ? now_->code : run_.code) {
    out.push_back(file.path);
  }
  return out;
}

/// Throws what is wrong; nothing of the run has changed then.
std::unique_ptr<HookReload::Reading> HookReload::read(const std::string& code, Hooks& hooks, HookContext& context,
                                                      const Limit& limit) const {
  const RunRequest& request = run_.request;
  KF_CHECK(!run_.code.empty(), Code::config, "the job is {}, no script: it has no hooks that could be read again", request.file);
  KF_CHECK(request.reread, Code::config, "hooks are read again in the first run of a script alone, and this is another one");
  auto out = std::make_unique<Reading>();
  Reading& reading = *out;
  const auto take_job = [this, &reading](Node job) -> RunResult {
    if (!reading.is_made) {
      make_hooks(reading, std::move(job));  // here: those of a table for kf.run are registered as long as that lasts
    }
    fail(Code::script, "kf.run: the script is read for its hooks, nothing is trained");
  };
  reading.script = std::make_unique<Script>(reading.registries, ScriptHost{take_job, {}, run_.world.rank(), run_.world.size()},
                                            request.scope.script().arguments());
  const ReloadGuard guard(*reading.script, limit.is_over, limit.why);
  fs::path path = run_.code.front().path;
  if (!code.empty()) {
    reading.folder.emplace("kf-host-reload", Code::other);
    const std::map<std::string, fs::path> files = files_in(reading.folder->path(), code);
    path = files.at("");
    reading.script->use_copies(files);
  } else if (request.from_folder) {
    reading.script->use_copies(recorded_script(run_.plan.dir).copies);
  }
  lua::TakenOutput printed(attach::kMostText / 2);
  std::optional<Node> returned;
  try {
    returned = reading.script->run_file(path);
  } catch (const Error&) {
    if (!reading.is_made) {
      throw;
    }
  }
  reading.code = reading.script->code();
  if (!reading.is_made) {
    KF_CHECK(returned || request.from_folder, Code::config, "the script returns no job any more and calls no kf.run");
    make_hooks(reading, returned.value_or(Node()));
  }
  hooks.hand_over(reading.hooks);
  for (const std::unique_ptr<Hook>& hook : reading.hooks) {
    if (hook->wants(Event::train_begin, context.state.step)) {
      hook->call(Event::train_begin, context);
    }
    hook->state();  // what cannot be saved is refused here, not by the next checkpoint
  }
  reading.printed = printed.text();
  return out;
}

/// By what the script's job says now, which may differ in its hooks alone.
void HookReload::make_hooks(Reading& reading, Node job) const {
  job.origin.file = run_.code.front().path.string();  // code that is repeated lies elsewhere; `extends` counts from the script
  reading.loaded = std::make_unique<config::Loaded>(run_.request.reread(std::move(job), reading.registries.catalog()));
  std::string changed;
  for (const Difference& d : differences(job_values(run_.config), job_values(reading.loaded->config))) {
    changed += is_of_hooks(d) ? "" : format("\n  {}: {} -> {}", d.key, d.before, d.after);
  }
  KF_CHECK(changed.empty(), Code::config, "only hooks change while a run is on; this is another job:{}", changed);
  reading.scope = std::make_unique<Script::RunScope>(*reading.script, reading.loaded->config, Script::RunScope::Beside());
  show_world(*reading.scope, run_.world);
  for (const std::string& name : reading.loaded->config.hooks) {
    reading.hooks.push_back(make_part(reading.registries.hook, name, reading.loaded->config, reading.registries));
  }
  reading.is_made = true;
}

Outcome HookReload::reload(const std::string& code, Hooks& hooks, HookContext& context, const Limit& limit) {
  Outcome out;
  std::unique_ptr<Reading> reading;
  try {
    reading = read(code, hooks, context, limit);
  } catch (const Error& e) {
    out.error = e.what();
    out.code = e.code();
  } catch (const std::exception& e) {
    out.error = e.what();
  }
  // All ranks, or none; and all the same.
  const std::string mine = out.error.empty() ? "+" + to_json(reading->code) : "-";
  const std::vector<std::string> told = run_.world.all().tell(mine);
  const bool failed = std::any_of(told.begin(), told.end(), [](const std::string& one) { return one == "-"; });
  if (!failed && std::any_of(told.begin(), told.end(), [&told](const std::string& one) { return one != told.front(); })) {
    out.error = "the ranks have read files that differ; read them again when all machines have the new ones";
    out.code = Code::config;
  }
  if (failed || !out.error.empty()) {
    return out;
  }
  std::vector<std::string> names;
  for (const std::unique_ptr<Hook>& hook : reading->hooks) {
    names.push_back(hook->name());
  }
  hooks.exchange(std::move(reading->hooks));
  out.output = reading->printed + "hooks: " + names_text(names) + "\n";
  if (const std::vector<std::string> others = other_parts(reading->registries); !others.empty()) {
    out.output += "as the run began with them: " + join(others, ", ") + "\n";
  }
  out.changed = true;
  now_ = std::move(reading);  // those before are not needed any more
  return out;
}

}  // namespace kf
