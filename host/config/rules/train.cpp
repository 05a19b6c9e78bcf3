#include <algorithm>

#include "config/plan/budget.h"
#include "config/plan/cycles.h"
#include "config/plan/derived.h"
#include "config/plan/load_parts.h"
#include "config/plan/sinks.h"
#include "config/rules/rules.h"
#include "config/schema/schema.h"
#include "core/error.h"
#include "core/name_map.h"
#include "core/name_pattern.h"
#include "core/text.h"

namespace kf::config {
namespace {

void sequence_fits_model(const Job& job, Findings& findings) {
  const std::int64_t seq_len = job.config.train.seq_len;
  const std::int64_t longest = job.config.model.max_seq_len;
  if (seq_len > longest) {
    findings.problem(
        {"train.seq_len", "model.max_seq_len"},
        format("train.seq_len ({}) exceeds model.max_seq_len ({}); raise model.max_seq_len or lower train.seq_len", seq_len, longest));
  }
}

void warmup_ends_within_run(const Job& job, Findings& findings) {
  const std::int64_t steps = effective_max_steps(job.config, job.world.value_or(1));
  const std::int64_t warmup = job.config.scheduler.warmup_steps.of(schedule_length(job.config.scheduler, steps));
  if (warmup > steps && job.config.scheduler.name != "constant" && job.config.scheduler.name != "none") {
    findings.warn(
        {"scheduler.warmup_steps", "train.max_steps", "train.max_tokens"},
        format("scheduler.warmup_steps ({}) is more than the run's {} steps: the learning rate never reaches its peak", warmup, steps));
  }
}

/// Said where the lengths were given: a run that is cut short keeps a rate that its settings meant to lower.
void decay_ends_within_schedule(const Job& job, Findings& findings) {
  const SchedulerConfig& s = job.config.scheduler;
  const std::int64_t length = schedule_length(s, effective_max_steps(job.config, job.world.value_or(1)));
  const bool wsd = s.name == "wsd";
  const bool decays = wsd || s.name == "cosine" || s.name == "linear" || s.name == "rex";
  if (!decays || gives_cycles(s) || gives_cycle_length(s) || (!s.decay_steps && !(wsd && s.stable_steps))) {
    return;
  }
  const std::int64_t warmup = s.warmup_steps.of(length);
  const std::int64_t stable = wsd && s.stable_steps ? s.stable_steps->of(length) : 0;
  const std::int64_t decay = s.decay_steps ? s.decay_steps->of(length) : 1;  // unset: what is left
  if (warmup > length || warmup + stable + decay <= length) {
    return;
  }
  findings.warn({"scheduler.decay_steps", "scheduler.stable_steps", "scheduler.warmup_steps", "train.max_steps"},
                format("scheduler.warmup_steps ({}){}{} end after the schedule's {} steps: the learning rate never reaches its floor",
                       warmup, wsd && s.stable_steps ? format(", stable_steps ({})", stable) : "",
                       s.decay_steps ? format(" and decay_steps ({})", decay) : "", length));
}

void budget_agrees_with_steps(const Job& job, Findings& findings) {
  const TrainConfig& t = job.config.train;
  if (!t.max_tokens || !findings.given("train.max_steps") || t.max_steps == TrainConfig().max_steps) {
    return;
  }
  // Where the number of ranks is unknown, any number will do that makes both agree.
  const std::int64_t ranks =
      job.world ? data_ranks(job.config.distributed, *job.world) : std::max<std::int64_t>(1, ranks_for_budget(job.config));
  const std::int64_t steps = steps_for_tokens(*t.max_tokens, tokens_per_step(job.config, ranks));
  if (steps != t.max_steps) {
    findings.problem(
        {"train.max_steps", "train.max_tokens"},
        format(
            "train.max_steps ({}) disagrees with train.max_tokens ({}): at {} tokens a step the budget gives {} steps; give one of the two",
            t.max_steps, *t.max_tokens, tokens_per_step(job.config, ranks), steps));
  }
}

void one_source_of_weights(const Job& job, Findings& findings) {
  const CheckpointConfig& c = job.config.checkpoint;
  if (c.init_weights != "saved" && !c.init_from) {
    findings.warn({"checkpoint.init_weights"},
                  "checkpoint.init_weights has no effect: checkpoint.init_from names no weights to start from");
  }
  if (c.load_path && c.init_from) {
    findings.problem({"checkpoint.load_path", "checkpoint.init_from"},
                     "checkpoint.load_path and checkpoint.init_from are both given; load_path continues a run, init_from starts one: give "
                     "one of the two");
  }
}

/// A name that means nothing would let nothing through, without a word.
void accepted_changes_are_known(const Job& job, Findings& findings) {
  for (const std::string& name : job.config.checkpoint.accept_changes) {
    const bool part = job.config.parts.contains(name);
    if (!part && find_row(name) == nullptr && !is_section(name) && name != "code" && name != "files") {
      std::vector<std::string> names{"code", "files"};
      for (const Row& row : rows()) {
        names.push_back(row.key());
      }
      const std::string near = nearest(name, names);
      findings.problem({"checkpoint.accept_changes"},
                       format("checkpoint.accept_changes: '{}' is no key or section of the job{}; there are also \"code\" and \"files\"",
                              name, near.empty() ? "" : "; did you mean '" + near + "'?"));
    }
  }
}

/// What is loaded in part, from where; and whether the patterns are any.
void loading_in_part_fits(const Job& job, Findings& findings) {
  const CheckpointConfig& c = job.config.checkpoint;
  const std::string key = "checkpoint.exclude_from_loading", map = "checkpoint.name_map";
  try {
    for (const std::string& text : c.exclude_from_loading) {
      const NamePattern compiled(text, key);
    }
  } catch (const Error& e) {
    findings.problem({key}, e.what());
  }
  try {
    std::vector<std::pair<std::string, std::string>> rules;
    for (const NameRule& rule : c.name_map) {
      rules.emplace_back(rule.from, rule.to);
    }
    const NameMap compiled(rules, map);
  } catch (const Error& e) {
    findings.problem({map}, e.what());
  }
  for (const std::string& given : {key, map, std::string("checkpoint.strict")}) {
    if (!c.init_from && !c.load_path && findings.given(given)) {
      findings.warn({given}, format("{} has no effect: it needs checkpoint.init_from or checkpoint.load_path; a run's own checkpoints are "
                                    "loaded whole",
                                    given));
    }
  }
  for (const std::string& part : c.exclude_from_loading) {
    if (c.init_from && !c.load_path && is_load_part(part) && part != "model") {
      findings.warn(
          {key}, format("{}: \"{}\" has no effect: checkpoint.init_from takes weights alone; it is about checkpoint.load_path", key, part));
    }
  }
  if (c.init_weights != "saved" && (c.init_layers != "exact" || !c.name_map.empty())) {
    findings.problem({"checkpoint.init_weights", c.init_layers != "exact" ? "checkpoint.init_layers" : map},
                     format("checkpoint.init_weights = \"{}\" finds averages by the names of the model's weights, which "
                            "checkpoint.init_layers and name_map change; leave one of them out",
                            c.init_weights));
  }
  if (!c.init_from && findings.given("checkpoint.init_layers")) {
    findings.warn({"checkpoint.init_layers"}, "checkpoint.init_layers has no effect: it needs checkpoint.init_from");
  }
}

void frozen_weights_come_from_somewhere(const Job& job, Findings& findings) {
  const Config& c = job.config;
  const bool saved = saves_frozen(c);
  if (!saved && !c.checkpoint.init_from) {
    findings.problem({"checkpoint.save_frozen", "checkpoint.init_from"},
                     "checkpoint.save_frozen = false needs checkpoint.init_from: the weights that are not saved come from there again");
  }
  if (!saved && !takes_init_as_it_is(c.checkpoint)) {
    findings.problem({"checkpoint.save_frozen"},
                     "checkpoint.save_frozen = false takes the frozen weights of checkpoint.init_from as they are; checkpoint.init_vocab, "
                     "init_weights, init_head, init_layers, strict, exclude_from_loading and name_map change them: leave these out, or "
                     "save all weights");
  }
  if (!saved && c.train.frozen.empty() && c.train.trainable.empty() && c.adapter.name.empty()) {
    findings.warn({"checkpoint.save_frozen"}, "checkpoint.save_frozen has no effect: every weight trains (train.frozen, train.trainable)");
  }
}

/// What an adapter cannot do, and what has no effect without one.
void adapter_fits(const Job& job, Findings& findings) {
  const Config& c = job.config;
  const AdapterConfig usual;
  if (c.adapter.name.empty()) {
    if (!c.adapter.path.empty() || c.adapter.rank != usual.rank || c.adapter.alpha != usual.alpha || c.adapter.dropout != usual.dropout ||
        c.adapter.targets != usual.targets) {
      findings.problem({"adapter.name"},
                       "[adapter] has no name, so there is no adapter; set adapter.name = \"lora\", or leave [adapter] out");
    }
    return;
  }
  if (c.adapter.targets.empty()) {
    findings.problem({"adapter.targets"},
                     "adapter.targets is empty, so no layer gets an adapter; name linear layers, or leave adapter.name out");
  }
  if (!c.adapter.path.empty() && c.adapter.name != "lora") {
    findings.problem({"adapter.path", "adapter.name"},
                     format("adapter.path is a folder of PEFT's LoRA, and adapter.name is '{}'; leave one of them out", c.adapter.name));
  }
  if (c.optimizer.qk_clip) {
    findings.problem({"optimizer.qk_clip", "adapter.name"},
                     "optimizer.qk_clip = true shrinks query weights, which an adapter leaves frozen; leave one of the two out");
  }
  if (job.trains && !c.checkpoint.init_from && !c.checkpoint.load_path) {
    findings.warn({"adapter.name", "checkpoint.init_from"},
                  "the adapter is trained beside initial weights, which checkpoints then hold, too: checkpoint.init_from names a model");
  }
}

void profile_runs_forward(const Job& job, Findings& findings) {
  const ProfilingConfig& p = job.config.profiling;
  if (p.end_step <= p.start_step) {
    findings.problem({"profiling.end_step", "profiling.start_step"},
                     format("profiling.end_step ({}) must be greater than profiling.start_step ({})", p.end_step, p.start_step));
  }
}

constexpr std::size_t kLongestName = 255;  // NAME_MAX of every common file system

void run_name_is_a_name(const Job& job, Findings& findings) {
  const std::string& name = job.config.run.name;
  const bool control = std::any_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  if (control || name.find('/') != std::string::npos || name == "." || name == "..") {
    findings.problem({"run.name"}, format("run.name ({}) must be a plain name without '/' and control characters; run.dir takes a path",
                                          brief(Node(name))));
  }
  if (name.size() > kLongestName) {
    findings.problem({"run.name"}, format("run.name has {} bytes; file systems take {} at most", name.size(), kLongestName));
  }
}

/// The shell replaces '~' where it begins a word, so neither in a file nor behind a '='.
void folders_are_spelled_out(const Job& job, Findings& findings) {
  const std::pair<const char*, const std::string&> folders[] = {{"run.dir", job.config.run.dir},
                                                                {"checkpoint.dir", job.config.checkpoint.dir},
                                                                {"checkpoint.mirror", job.config.checkpoint.mirror},
                                                                {"metrics.tensorboard_dir", job.config.metrics.tensorboard_dir},
                                                                {"metrics.mlflow_dir", job.config.metrics.mlflow_dir},
                                                                {"profiling.trace_dir", job.config.profiling.trace_dir},
                                                                {"data.cache_dir", job.config.data.cache_dir}};
  for (const auto& [key, folder] : folders) {
    if (folder == "~" || folder.starts_with("~/")) {
      findings.problem({key},
                       format("{} ('{}') would make a folder named '~': write the home folder out, or ./~ for that one", key, folder));
    }
  }
}

void watched_keys_have_effect(const Job& job, Findings& findings) {
  for (const char* key : {"metrics.watch_interval", "metrics.watch_per_param"}) {
    if (job.config.metrics.watch.empty() && findings.given(key)) {
      findings.warn({key}, format("{} has no effect: metrics.watch is empty, so nothing is watched", key));
    }
  }
}

/// Keys of a tracker say nothing where the run has not its sink.
void keys_of_trackers_have_effect(const Job& job, Findings& findings) {
  const std::vector<std::string> sinks = sink_list(job.config.metrics);
  const auto has = [&sinks](const char* name) { return std::find(sinks.begin(), sinks.end(), name) != sinks.end(); };
  const std::pair<const char*, const char*> keys[] = {{"tensorboard_dir", "tensorboard"}, {"wandb_project", "wandb"},
                                                      {"wandb_run_name", "wandb"},        {"wandb_run_id", "wandb"},
                                                      {"mlflow_dir", "mlflow"},           {"prometheus_address", "prometheus"}};
  for (const auto& [name, sink] : keys) {
    const std::string key = std::string("metrics.") + name;
    const Row& row = *find_row(key);
    if (!has(sink) && findings.given(key) && !(row.get(job.config) == row.fallback)) {
      findings.warn({key}, format("{} has no effect: metrics.sinks has no \"{}\"", key, sink));
    }
  }
  if (job.config.metrics.histogram_interval > 0 && histogram_interval(job.config.metrics) == 0) {
    findings.warn({"metrics.histogram_interval"},
                  "metrics.histogram_interval has no effect: metrics.sinks has neither \"tensorboard\" nor \"wandb\"");
  }
  if (has("prometheus") && job.config.metrics.prometheus_port == 0) {
    findings.problem({"metrics.sinks", "metrics.prometheus_port"},
                     "metrics.sinks has \"prometheus\", which needs a port: set metrics.prometheus_port");
  }
}

/// Theirs: an id stands in addresses.
void wandb_id_is_one(const Job& job, Findings& findings) {
  const std::string& id = job.config.metrics.wandb_run_id;
  constexpr std::size_t kLongestId = 128;
  const bool plain = std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == '.';
  });
  if (!plain || id.size() > kLongestId) {
    findings.problem(
        {"metrics.wandb_run_id"},
        format("metrics.wandb_run_id ({}) must have letters, digits, '-', '_' and '.' alone, {} at most", brief(Node(id)), kLongestId));
  }
}

}  // namespace

std::vector<Rule> train_rules() {
  return {sequence_fits_model,
          warmup_ends_within_run,
          decay_ends_within_schedule,
          budget_agrees_with_steps,
          one_source_of_weights,
          loading_in_part_fits,
          profile_runs_forward,
          run_name_is_a_name,
          folders_are_spelled_out,
          accepted_changes_are_known,
          frozen_weights_come_from_somewhere,
          adapter_fits,
          watched_keys_have_effect,
          keys_of_trackers_have_effect,
          wandb_id_is_one};
}

}  // namespace kf::config
