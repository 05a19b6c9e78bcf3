#include "app/resume.h"

#include <algorithm>
#include <set>

#include "config/json.h"
#include "config/schema.h"
#include "core/error.h"
#include "core/log.h"
#include "data/data_record.h"

namespace kf {
namespace {

constexpr const char* kScript = "the script";

/// Keys that say what is learned from, and in which order: with another value the steps done so far were steps of another run. What only
/// says how it is read, or changes with the steps anyway, may change.
bool is_data_source(const std::string& key) {
  static const std::set<std::string> may_change{"data.num_workers",    "data.pin_memory",        "data.prefetch_factor", "data.cache_dir",
                                                "data.hf_streaming",   "data.mix_temperature",   "data.phases",          "data.epochs",
                                                "data.anneal_weights", "data.anneal_start_step", "data.reuse_batches"};
  return key == "train.seq_len" || (key.starts_with("data.") && !may_change.contains(key));
}

bool is_run_length(const std::string& key) {
  return key == "train.max_steps" || key == "train.max_tokens" || key == "data.epochs" || key == kScript;
}

/// Keys that say who reads the data, not what comes of it: a complete run stays complete, and a longer one goes on.
bool changes_no_number(const std::string& key) {
  return key == "data.num_workers" || key == "data.prefetch_factor" || key == "data.pin_memory" || key == "data.cache_dir";
}

std::string describe(const Difference& d) { return format("{} {} (checkpoint) -> {} (now)", d.key, d.before, d.after); }

std::string describe(const std::vector<Difference>& list) {
  std::vector<std::string> lines;
  for (const Difference& difference : list) {
    lines.push_back("\n  " + describe(difference));
  }
  return join(lines, "");
}

std::vector<Difference> select(const std::vector<Difference>& all, bool (*wanted)(const std::string&)) {
  std::vector<Difference> out;
  std::copy_if(all.begin(), all.end(), std::back_inserter(out), [&](const Difference& d) { return wanted(d.key); });
  return out;
}

}  // namespace

config::Table job_values(const config::Config& config, const std::string& script) {
  config::Table values;
  for (const config::Row& row : config::rows()) {
    // Where a run lies and which checkpoint it took over do not change what is computed.
    const bool place = row.section == "run" || row.key() == "checkpoint.dir" || row.key() == "checkpoint.load_path";
    if (!place) {
      values[row.key()] = row.get(config);
    }
  }
  for (const auto& [name, options] : config.parts) {
    values[name] = config::Node(options);
  }
  if (!script.empty()) {
    values[kScript] = config::Node(script);
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
    if (after.find(key) == nullptr) {
      compare(key);
    }
  }
  return out;
}

Resume decide_resume(const std::optional<fs::path>& newest, const config::Config& config, const std::string& script, std::int64_t max_steps,
                     const std::string& data_fingerprint) {
  Resume resume;
  if (!newest) {
    return resume;
  }
  resume.checkpoint = *newest;
  const CheckpointState state = CheckpointManager::peek(*newest);
  const config::Table* const before = state.job.table();
  KF_CHECK(before != nullptr, Code::checkpoint, "{} does not say which job made it", *newest);
  resume.changed = differences(*before, job_values(config, script));
  const bool taken_over = config.checkpoint.load_path && newest->lexically_relative(*config.checkpoint.load_path).native().find("..") != 0;
  const std::string remedy = taken_over ? "take its weights alone with checkpoint.init_from instead of checkpoint.load_path"
                                        : "give the run another run.name, or start over with run.fresh = true";

  const auto is_model = [](const std::string& key) { return key.rfind("model.", 0) == 0; };
  if (const auto changed = select(resume.changed, is_model); !changed.empty()) {
    fail(Code::config, "the run in {} trains another model:{}\n{}", *newest, describe(changed), remedy);
  }
  if (const auto changed = select(resume.changed, is_data_source); !changed.empty()) {
    fail(Code::config, "the run in {} learns from other data:{}\n{}", *newest, describe(changed), remedy);
  }
  const DataChanges data = data_changes(state.data_fingerprint, data_fingerprint, newest->string());
  KF_CHECK(data.training.empty(), Code::config, "{}; {}", data.training, remedy);
  if (!data.evaluation.empty()) {
    log::warn("{}; losses on them before and after do not compare", data.evaluation);
  }

  const bool longer = state.run.step < max_steps;
  std::vector<Difference> changed = resume.changed;
  std::erase_if(changed, [](const Difference& d) { return changes_no_number(d.key); });
  const bool only_length = std::all_of(changed.begin(), changed.end(), [](const Difference& d) { return is_run_length(d.key); });
  if (state.finished) {
    const bool other_length =
        std::any_of(changed.begin(), changed.end(), [](const Difference& d) { return is_run_length(d.key) && d.key != kScript; });
    KF_CHECK(changed.empty() || (only_length && other_length), Code::config,
             "the run in {} is complete, and this job differs from it:{}\n{}", *newest, describe(changed), remedy);
    KF_CHECK(longer || changed.empty(), Code::config, "the run in {} is complete at step {}; {} steps are asked for now: {}", *newest,
             state.run.step, max_steps, remedy);
    resume.kind = changed.empty() ? Resume::Kind::complete : Resume::Kind::resume;
    return resume;
  }
  KF_CHECK(longer, Code::config, "the checkpoint {} is at step {}, and train.max_steps asks for {}: ask for more, or {}", *newest,
           state.run.step, max_steps, remedy);
  resume.kind = Resume::Kind::resume;
  return resume;
}

}  // namespace kf
