#include "run/resume.h"

#include <algorithm>
#include <set>

#include "checkpoint/reader.h"
#include "config/load/same_path.h"
#include "config/schema/schema.h"
#include "config/tree/json.h"
#include "core/error.h"
#include "data/documents/data_record.h"

namespace kf {
namespace {

using config::ResumeClass;

std::string describe(const Difference& d) { return format("{} {} (checkpoint) -> {} (now)", d.key, d.before, d.after); }

std::string lines_of(const std::vector<Difference>& list) {
  std::string lines;
  for (const Difference& difference : list) {
    lines += "\n  " + describe(difference);
  }
  return lines;
}

/// Whether checkpoint.accept_changes names `key`, or a section or kind that it belongs to.
bool accepts(const config::Config& config, const std::string& key) {
  const config::Strings& accepted = config.checkpoint.accept_changes;
  return std::any_of(accepted.begin(), accepted.end(), [&](const std::string& name) { return key == name || key.starts_with(name + "."); });
}

/// What cannot go on without a word: one line each, with what checkpoint.accept_changes calls it.
struct Refused {
  std::string lines;
  std::vector<std::string> names;

  void add(const std::string& line, const std::string& name) {
    lines += "\n  " + line;
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(name);
    }
  }
};

class Decision {
 public:
  explicit Decision(const ResumeQuestion& question) : q_(question) {}

  Resume make() {
    if (!q_.newest) {
      return std::move(resume_);
    }
    resume_.checkpoint = *q_.newest;
    resume_.state = CheckpointReader(*q_.newest).state();
    const config::Table* const before = resume_.state.job.table();
    KF_CHECK(before != nullptr, Code::checkpoint, "{} does not say which job made it", *q_.newest);
    compare(*before);
    return resume_.state.finished ? of_finished() : of_unfinished();
  }

 private:
  /// What the run would be named or started otherwise with.
  std::string remedy() const {
    const bool taken_over =
        q_.config.checkpoint.load_path && q_.newest->lexically_relative(*q_.config.checkpoint.load_path).native().find("..") != 0;
    return taken_over ? "take its weights alone with checkpoint.init_from instead of checkpoint.load_path"
                      : "give the run another run.name, or start over with run.fresh = true";
  }

  void compare(const config::Table& before) {
    Refused refused;
    bool other_data = false;
    const config::Table now = job_values(q_.config);
    config::Table then = before;
    config::respell_paths(then, resume_.state.folder, now);
    for (Difference& difference : differences(then, now)) {
      const ResumeClass meaning = config::resume_class(difference.key);
      if (meaning == ResumeClass::free) {
        continue;
      }
      if (meaning == ResumeClass::identity && !accepts(q_.config, difference.key)) {
        refused.add(describe(difference), difference.key);
      }
      other_data = other_data || (meaning == ResumeClass::identity && difference.key.starts_with("data"));
      resume_.changed.push_back(std::move(difference));
    }
    compare_code(refused);
    // Other keys of the data give other files, of course.
    const config::DataConfig& d = q_.config.data;
    const std::string source = !d.dataset_path.empty() ? d.dataset_path : d.hf_dataset_name.value_or("");
    const DataChanges data = data_changes(resume_.state.data_fingerprint, q_.data_fingerprint, q_.newest->string(), source);
    if (!other_data && !data.training.empty()) {
      accepts(q_.config, "files") ? resume_.remarks.push_back(data.training) : refused.add(data.training, "files");
    }
    if (!data.evaluation.empty()) {
      resume_.remarks.push_back(data.evaluation + "; losses on them before and after do not compare");
    }
    const bool of_weights = std::any_of(refused.names.begin(), refused.names.end(), [](const std::string& name) {
      return name.starts_with("model.") || name.starts_with("optimizer.");
    });
    KF_CHECK(refused.names.empty(), Code::config,
             "the run in {} is another one:{}\n{}; checkpoint.accept_changes = [{}] goes on all the same{}", *q_.newest, refused.lines,
             remedy(), "\"" + join(refused.names, "\", \"") + "\"",
             of_weights ? ", where the weights and the optimizer's state still fit; else checkpoint.init_from takes weights alone" : "");
  }

  void compare_code(Refused& refused) {
    for (const CodeChange& change : code_changes(resume_.state.code, q_.code)) {
      const std::string line = format("the script's code: {}: {}", change.path, change.what);
      if (change.mild || !q_.code_is_identity || accepts(q_.config, "code")) {
        resume_.remarks.push_back(line);
      } else {
        refused.add(line, "code");
      }
    }
  }

  bool longer() const { return resume_.state.run.step < q_.max_steps; }

  Resume of_unfinished() {
    KF_CHECK(longer(), Code::config, "the checkpoint {} is at step {}, and train.max_steps asks for {}: ask for more, or {}", *q_.newest,
             resume_.state.run.step, q_.max_steps, remedy());
    resume_.kind = Resume::Kind::resume;
    return std::move(resume_);
  }

  Resume of_finished() {
    const std::vector<Difference>& changed = resume_.changed;
    const bool other_length = std::any_of(changed.begin(), changed.end(), [](const Difference& d) { return config::is_run_length(d.key); });
    const std::int64_t step = resume_.state.run.step;
    if (longer() && (other_length || q_.config.run.go_on)) {
      resume_.kind = Resume::Kind::resume;
      return std::move(resume_);
    }
    KF_CHECK(longer() || !other_length, Code::config, "the run in {} is complete at step {}; {} steps are asked for now: {}", *q_.newest,
             step, q_.max_steps, remedy());
    KF_CHECK(changed.empty(), Code::config, "the run in {} is {} at step {}, and this job differs from it:{}\n{}, or {}", *q_.newest,
             longer() ? "stopped" : "complete", step, lines_of(changed),
             longer() ? "run.go_on = true goes on with these" : "ask for more steps (train.max_steps)", remedy());
    resume_.kind = Resume::Kind::complete;
    return std::move(resume_);
  }

  const ResumeQuestion& q_;
  Resume resume_;
};

}  // namespace

config::Table job_values(const config::Config& config) {
  static const std::set<std::string> about_the_start{"checkpoint.dir", "checkpoint.load_path", "checkpoint.accept_changes"};
  config::Table values;
  for (const config::Row& row : config::rows()) {
    if (row.section != "run" && !about_the_start.contains(row.key())) {
      values[row.key()] = row.get(config);
    }
  }
  for (const auto& [name, options] : config.parts) {
    values[name] = config::Node(options);
  }
  return values;
}

std::vector<Difference> differences(const config::Table& before, const config::Table& after) {
  const config::Table defaults = job_values(config::Config());
  const auto text_of = [&](const config::Table& table, const std::string& key) {
    const config::Node* value = table.find(key);
    value = value != nullptr ? value : defaults.find(key);
    return value == nullptr ? std::string("absent") : config::to_json(*value, config::JsonStyle::exact);
  };
  std::vector<Difference> out;
  const auto compare = [&](const std::string& key) {
    if (text_of(before, key) != text_of(after, key)) {
      out.push_back({key, text_of(before, key), text_of(after, key)});
    }
  };
  for (const auto& [key, value] : after) {
    compare(key);
  }
  for (const auto& [key, value] : before) {
    if (after.find(key) == nullptr && key != "the script") {  // which earlier versions kept here
      compare(key);
    }
  }
  return out;
}

Resume decide_resume(const ResumeQuestion& question) { return Decision(question).make(); }

}  // namespace kf
