#include "app/command/reproduced_run.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "app/line/arguments.h"
#include "app/script/script_runs.h"
#include "app/script/script_session.h"
#include "bindings/script/script.h"
#include "builtins/builtins.h"
#include "config/load/load.h"
#include "config/load/toml.h"
#include "config/schema/schema.h"
#include "core/error.h"
#include "core/log.h"
#include "core/plain_file.h"
#include "report/read/json_values.h"
#include "run/run.h"
#include "run/run_record.h"
#include "train/loop/hook.h"

namespace kf {
namespace {

constexpr std::uint64_t kMostJob = std::uint64_t{64} << 20;

/// Ends the run behind a step, saved.
class StopAt final : public Hook {
 public:
  explicit StopAt(std::int64_t step) : step_(step) {}
  std::string name() const override { return "reproduce"; }
  bool wants(Event event, std::int64_t step) const override { return event == Event::step_end && step == step_; }
  void call(Event /*event*/, HookContext& context) override { context.controls->stop = "this is as far as it is reproduced"; }

 private:
  std::int64_t step_;
};

/// The words of a shell's line as `shell_line` writes it.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> out;
  bool inside = false, begun = false;
  std::string word;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\'') {
      inside = !inside;
      begun = true;
    } else if (line[i] == '\\' && !inside && i + 1 < line.size()) {
      word += line[++i];
      begun = true;
    } else if (line[i] == ' ' && !inside) {
      if (begun) {
        out.push_back(std::exchange(word, {}));
      }
      begun = false;
    } else {
      word += line[i];
      begun = true;
    }
  }
  if (begun) {
    out.push_back(word);
  }
  return out;
}

/// The settings of the command that started the run.
std::vector<std::string> settings_of_command(const report::Start& start) {
  const std::vector<std::string> words = words_of(start.command);
  std::vector<std::string> args(words.begin() + (words.empty() ? 0 : 1), words.end());
  if (!args.empty() && args.front() == "train") {
    args.erase(args.begin());
  }
  return parse_train_arguments(args).overrides;
}

/// A setting that is an override where this program has it.
void set(std::vector<std::string>& out, const std::string& key, const std::string& value) {
  if (config::find_row(key) != nullptr) {
    out.push_back(format("--{}={}", key, value));
  }
}

/// Where it writes, and what it leaves alone: no other place of the original gets anything.
std::vector<std::string> placed(const fs::path& dir, const std::string& name) {
  std::vector<std::string> out{"--run.dir=" + dir.string(), "--run.name=" + name, "--run.id=", "--run.fresh=false"};
  set(out, "run.requeue", "false");
  set(out, "run.reload", "off");
  set(out, "checkpoint.dir", (dir / config::CheckpointConfig().dir).string());
  set(out, "checkpoint.mirror", "");
  set(out, "metrics.sinks", "[\"console\", \"jsonl\"]");
  set(out, "metrics.enable_wandb", "false");
  set(out, "metrics.enable_tensorboard", "false");
  set(out, "metrics.histogram_interval", "0");  // neither sink has a use for them
  return out;
}

std::vector<std::string> overrides_of(const Reproduction& how, bool first) {
  std::vector<std::string> out = placed(how.to, how.name);
  for (const char* key : {"tokenizer_path", "chat_template"}) {
    if (const fs::path copy = recorded_copy(how.run, key); !copy.empty()) {
      set(out, format("data.{}", key), copy.string());
    }
  }
  const fs::path said = how.run / "steering.jsonl";
  if (std::error_code none; fs::file_size(said, none) > 0 && !none) {
    set(out, "run.steering", said.string());
  }
  if (!first) {
    set(out, "run.go_on", "true");
  }
  out.insert(out.end(), how.overrides.begin(), how.overrides.end());
  return out;
}

/// Trains, and stops where the part ends.
RunResult train(RunRequest run, const Reproduction& how, const RunPart& part, bool first, const Registries& registries) {
  std::int64_t end = part.end;
  if (how.steps > 0) {
    end = end > 0 ? std::min(end, how.steps) : how.steps;
  }
  if (end > 0) {
    run.hook = [end] { return std::make_unique<StopAt>(end); };
  }
  run.launch = how.launch;
  run.from_folder = !first;  // what it is made of is there already
  run.products = how.products;
  run.opened = first ? how.opened : std::function<void(const fs::path&)>();
  return run_job(run, registries);
}

config::Table job_table(const fs::path& job) {
  config::Report report;
  std::optional<config::Table> out = config::parse_toml(read_regular_file(job, kMostJob), job.string(), config::Origin::Kind::toml, report);
  KF_CHECK(out.has_value(), Code::config, "{}", config::to_text(report));
  return std::move(*out);
}

/// A script that runs once more, up to the kf.run that is wanted.
class ScriptAgain {
 public:
  ScriptAgain(const Reproduction& how, const RunPart& part, bool first)
      : how_(how),
        part_(part),
        first_(first),
        recorded_(recorded_script(how.run)),
        registries_(native_registries()),
        script_(registries_,
                {[this](config::Node recipe) { return run(std::move(recipe)); },
                 [this](const fs::path& path, const std::string& weights) { return load_script_model(path, weights, registries_); },
                 how.launch.rank(), how.launch.world()},
                recorded_.arguments) {
    script_.use_copies(recorded_.copies);
  }

  RunResult run_file() {
    try {
      if (std::optional<config::Node> recipe = script_.run_file(recorded_.path); recipe && !result_) {
        run(std::move(*recipe));
      }
    } catch (const Error&) {
      if (!result_) {
        throw;
      }
    }
    KF_CHECK(result_.has_value(), Code::script, "{} came to its end at kf.run number {}, and the run was number {}", recorded_.path, calls_,
             part_.call);
    return std::move(*result_);
  }

 private:
  RunResult run(config::Node recipe) {
    KF_CHECK(!result_, Code::script, "kf.run: the run is reproduced, the script ends here");
    const bool wanted = ++calls_ == part_.call;
    config::Request request;
    if (wanted) {
      take_job(*recipe.table());
      request.overrides = overrides_of(how_, first_);
    } else {
      request.overrides = earlier_overrides();
    }
    request.recipe = std::move(recipe);
    request.world = how_.launch.world();
    const config::Loaded loaded = config::load_or_fail(request, registries_.catalog());
    const Script::RunScope scope(script_, loaded.config);
    RunRequest job{loaded, scope, recorded_.path, 0};
    job.call = calls_;
    if (!wanted) {
      job.launch = how_.launch;
      return run_job(job, registries_);
    }
    if (calls_ == 1) {  // a script that is read again ends at its first run
      job.reread = [this](config::Node again, const config::Catalog& parts) { return reread(std::move(again), parts); };
    }
    result_ = train(std::move(job), how_, part_, first_, registries_);
    fail(Code::script, "kf.run: the run is reproduced, the script ends here");
  }

  /// For hooks that were read again while the run trained: those of the script that was read then.
  config::Loaded reread(config::Node again, const config::Catalog& parts) const {
    config::Request request;
    take_job(*again.table(), {"hooks", "hook"});
    request.overrides = overrides_of(how_, first_);
    request.recipe = std::move(again);
    request.world = how_.launch.world();
    return config::load_or_fail(request, parts);
  }

  /// The resolved job counts, but for `without`, also where the script would say something else today. What it made of an earlier run of
  /// its own (a checkpoint to begin with) is that of now where the other is gone.
  void take_job(config::Table& recipe, const std::vector<std::string>& without = {}) const {
    config::Table job = job_table(part_.job);
    for (const std::string& key : without) {
      job.erase(key);
    }
    config::Node* const section = job.find("checkpoint");
    for (const char* key : {"init_from", "load_path"}) {
      const config::Node* const node = section != nullptr && section->table() != nullptr ? section->table()->find(key) : nullptr;
      const auto* const path = node != nullptr ? std::get_if<std::string>(&node->value) : nullptr;
      if (path != nullptr && !path_exists(*path) && config::find_node(recipe, format("checkpoint.{}", key)) != nullptr) {
        section->table()->erase(key);
      }
    }
    config::merge(recipe, job);
  }

  std::vector<std::string> earlier_overrides() const {
    std::vector<std::string> out = settings_of_command(report::read_record(how_.run).starts[part_.start - 1]);
    const std::string name = format("{}-call-{}", how_.to.filename(), calls_);
    const std::vector<std::string> own = placed(how_.to.parent_path() / name, name);
    out.insert(out.end(), own.begin(), own.end());
    return out;
  }

  const Reproduction& how_;
  const RunPart& part_;
  bool first_;
  RecordedScript recorded_;
  Registries registries_;
  Script script_;
  std::int64_t calls_ = 0;
  std::optional<RunResult> result_;
};

/// A job of TOML, of a sweep's trial, or one that went on from the folder: parts come from the script as far as it registers them.
RunResult run_toml(const Reproduction& how, const RunPart& part, bool first) {
  const RecordedScript script = recorded_script(how.run);
  ScriptSession session(script.path, script.arguments, script.copies, how.launch);
  config::Request request;
  request.job = part.job;
  request.overrides = overrides_of(how, first);
  request.world = how.launch.world();
  const config::Loaded loaded = config::load_or_fail(request, session.registries().catalog());
  RunRequest run{loaded, session.begin(loaded.config), part.job, how.overrides.size()};
  run.reread = [&request](const config::Node&, const config::Catalog& parts) { return config::load_or_fail(request, parts); };
  return train(std::move(run), how, part, first, session.registries());
}

}  // namespace

RunResult run_again(const Reproduction& how, const RunPart& part, bool first) {
  const bool by_script = part.call > 0 && !recorded_script(how.run).path.empty();
  return by_script ? ScriptAgain(how, part, first).run_file() : run_toml(how, part, first);
}

}  // namespace kf
