// Rules over the optimizer, the schedule, precision and averages.

#include <algorithm>
#include <cmath>

#include "config/plan/budget.h"
#include "config/plan/cycles.h"
#include "config/rules/rules.h"
#include "config/schema/schema.h"
#include "core/error.h"
#include "core/name_pattern.h"
#include "core/text.h"

namespace kf::config {
namespace {

/// Keys that only some native optimizers read. A registered one of another name may read what it likes.
struct Readers {
  const char* key;
  std::vector<std::string> optimizers;
};

const std::vector<Readers>& readers() {
  static const std::vector<Readers> all{{"muon_nesterov", {"muon"}},
                                        {"muon_scale", {"muon"}},
                                        {"muon_rms", {"muon"}},
                                        {"muon_weight_decay", {"muon"}},
                                        {"muon_exclude", {"muon"}},
                                        {"eps_root", {"adamw"}},
                                        {"nesterov", {"adamw", "sgdm"}},
                                        {"sgd_momentum", {"sgdm"}},
                                        {"state_dtype_m", {"adamw"}},
                                        {"state_dtype_v", {"adamw"}},
                                        {"adamc", {"adamw"}},
                                        {"update_rms_clip", {"adamw"}},
                                        {"update_norm_window", {"adamw"}},
                                        {"update_norm_sigma", {"adamw"}}};
  return all;
}

/// Whether a key has another value than its default: a snapshot gives every key.
bool changed(const Job& job, const std::string& key) {
  const Row* const row = find_row(key);
  return !(row->get(job.config) == row->fallback);
}

bool is_native(const std::string& name) {
  static const std::vector<std::string> all{
      "adamw", "lion", "muon",    "schedule_free_adamw", "sgdm", "cautious_adamw", "mars", "adopt", "adam_mini", "scion", "rmsprop",
      "soap",  "kron", "sophia_h"};
  return std::find(all.begin(), all.end(), name) != all.end();
}

void optimizer_reads_its_keys(const Job& job, Findings& findings) {
  const std::string& name = job.config.optimizer.name;
  if (!is_native(name)) {
    return;
  }
  for (const Readers& reader : readers()) {
    const std::string key = std::string("optimizer.") + reader.key;
    if (changed(job, key) && std::find(reader.optimizers.begin(), reader.optimizers.end(), name) == reader.optimizers.end()) {
      findings.warn({key, "optimizer.name"},
                    format("{} has no effect with optimizer.name = \"{}\"; it is read by {}", key, name, join(reader.optimizers, ", ")));
    }
  }
}

void one_update_clip(const Job& job, Findings& findings) {
  const OptimizerConfig& o = job.config.optimizer;
  if (o.update_norm_window > 0 && o.update_norm_window < 4) {
    findings.problem({"optimizer.update_norm_window"},
                     format("optimizer.update_norm_window ({}) must be 0 or at least 4; 128 is usual", o.update_norm_window));
  }
  if (o.update_norm_window > 0 && o.update_rms_clip > 0) {
    findings.problem({"optimizer.update_norm_window", "optimizer.update_rms_clip"},
                     format("optimizer.update_norm_window ({}) and optimizer.update_rms_clip ({}) both clip updates; give one of the two",
                            o.update_norm_window, o.update_rms_clip));
  }
}

void score_clip_fits_model(const Job& job, Findings& findings) {
  const ModelConfig& m = job.config.model;
  if (!job.config.optimizer.qk_clip) {
    return;
  }
  if (m.qk_norm) {
    findings.problem(
        {"optimizer.qk_clip", "model.qk_norm"},
        "optimizer.qk_clip = true has no effect with model.qk_norm = true, which normalises whatever the weights give; leave one "
        "of the two out");
  }
  if (m.attn_softcap > 0) {
    findings.problem(
        {"optimizer.qk_clip", "model.attn_softcap"},
        format("optimizer.qk_clip = true and model.attn_softcap ({}) both bound the scores; leave one of the two out", m.attn_softcap));
  }
  if (m.attention == "mla") {
    findings.problem({"optimizer.qk_clip", "model.attention"},
                     "optimizer.qk_clip = true is built for model.attention = \"gqa\" only; leave it out with \"mla\"");
  }
}

void shares_fit_schedule(const Job& job, Findings& findings) {
  const SchedulerConfig& s = job.config.scheduler;
  const double stable = s.name == "wsd" && s.stable_steps ? s.stable_steps->share() : 0;
  const double decay = s.decay_steps ? s.decay_steps->share() : 0;
  const double sum = s.warmup_steps.share() + stable + decay;
  if (sum > 1 + 1e-9) {
    findings.problem(
        {"scheduler.warmup_steps", "scheduler.decay_steps", "scheduler.stable_steps"},
        format("the shares of scheduler.warmup_steps ({}), stable_steps ({}) and decay_steps ({}) add up to {}; they must be at "
               "most 1, the whole schedule",
               s.warmup_steps.share(), stable, decay, sum));
  }
}

/// A schedule may be longer than the run: then this is its first part, and a longer run goes on in it.
void after_needs_an_end(const Job& job, Findings& findings) {
  const SchedulerConfig& s = job.config.scheduler;
  if (changed(job, "scheduler.after") && !s.total_steps) {
    findings.warn({"scheduler.after"}, "scheduler.after has no effect without scheduler.total_steps: nothing comes after the schedule");
  }
}

/// Starts of cycles, or their lengths, that make no sense; says so.
bool cycles_are_in_order(const SchedulerConfig& s, std::int64_t length, Findings& findings) {
  if (!s.cycles.is_list() && (s.cycles.one().is_share() || s.cycles.one().steps() > length)) {
    const Duration number = s.cycles.one();
    findings.problem({"scheduler.cycles"},
                     number.is_share()
                         ? format("scheduler.cycles ({}) must be a number of cycles, or a list of where they start", number.share())
                         : format("scheduler.cycles ({}) must be <= the schedule's {} steps", number.steps(), length));
    return false;
  }
  const std::vector<Duration>& starts = s.cycles.items();
  for (std::size_t i = 0; s.cycles.is_list() && i < starts.size(); ++i) {
    const std::int64_t start = starts[i].of(length);
    const std::int64_t before = i == 0 ? 0 : starts[i - 1].of(length);
    if (start <= before || start >= length) {
      findings.problem({"scheduler.cycles"},
                       format("scheduler.cycles[{}] (step {}) must be above {} and below the schedule's {} steps: the list holds where the "
                              "second and later cycles start",
                              i, start, i == 0 ? "0, where the first cycle starts," : format("the start before it ({})", before), length));
      return false;
    }
  }
  const std::vector<std::int64_t> ends =
      s.cycle_length.is_list() ? cycle_ends(s.cycle_length.items(), length) : std::vector<std::int64_t>();
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const std::int64_t begin = i == 0 ? 0 : ends[i - 1];
    if (ends[i] <= begin || ends[i] > length) {
      findings.problem(
          {"scheduler.cycle_length"},
          format("scheduler.cycle_length[{}] makes a cycle from step {} to {}; cycles must be longer than 0 and end within the "
                 "schedule's {} steps",
                 i, begin, ends[i], length));
      return false;
    }
  }
  if (!s.cycle_length.is_list() && s.cycle_length.one().is_share() && s.cycle_length.one().of(length) == 0) {
    findings.problem({"scheduler.cycle_length"},
                     format("scheduler.cycle_length ({}) is less than a step of the schedule's {}", s.cycle_length.one().share(), length));
    return false;
  }
  return true;
}

/// Of the cycles after the first, what is left over at the end aside; 0 where there is one cycle only.
std::int64_t shortest_later_cycle(const SchedulerConfig& s, std::int64_t length) {
  if (!s.cycle_length.is_list() && gives_cycle_length(s)) {
    const std::int64_t cycle = s.cycle_length.one().of(length);
    return cycle < length ? cycle : 0;
  }
  if (!s.cycles.is_list() && !gives_cycle_length(s)) {
    return s.cycles.one().steps() > 1 ? length / s.cycles.one().steps() : 0;
  }
  const std::vector<std::int64_t> starts = cycle_starts(s, length);
  const bool left_over = gives_cycle_length(s) && starts.size() > s.cycle_length.items().size();
  std::int64_t shortest = 0;
  for (std::size_t i = 1; i < starts.size() - (left_over ? 1 : 0); ++i) {
    const std::int64_t cycle = (i + 1 < starts.size() ? starts[i + 1] : length) - starts[i];
    shortest = shortest == 0 ? cycle : std::min(shortest, cycle);
  }
  return shortest;
}

void cycles_fit_schedule(const Job& job, Findings& findings) {
  const SchedulerConfig& s = job.config.scheduler;
  const std::int64_t length = schedule_length(s, effective_max_steps(job.config, job.world.value_or(1)));
  if (gives_cycles(s) && gives_cycle_length(s)) {
    const auto written = [&job](const char* key) { return to_text(find_row(key)->get(job.config)); };
    findings.problem({"scheduler.cycles", "scheduler.cycle_length"},
                     format("scheduler.cycles ({}) and scheduler.cycle_length ({}) are both given; give one of the two",
                            written("scheduler.cycles"), written("scheduler.cycle_length")));
    return;
  }
  if (!cycles_are_in_order(s, length, findings)) {
    return;
  }
  const std::int64_t cycle = shortest_later_cycle(s, length);
  if (cycle == 0 && changed(job, "scheduler.rewarmup_steps")) {
    findings.warn({"scheduler.rewarmup_steps"}, "scheduler.rewarmup_steps has no effect: there is one cycle only");
  }
  if (cycle > 0 && s.rewarmup_steps.of(cycle) >= cycle) {
    findings.problem({"scheduler.rewarmup_steps", "scheduler.cycles", "scheduler.cycle_length"},
                     format("scheduler.rewarmup_steps ({}) must be shorter than a cycle ({} steps)", s.rewarmup_steps.of(cycle), cycle));
  }
}

void schedule_has_its_numbers(const Job& job, Findings& findings) {
  const SchedulerConfig& s = job.config.scheduler;
  if (s.name == "inv" && s.min_lr_ratio <= 0) {
    findings.problem({"scheduler.min_lr_ratio", "scheduler.name"},
                     format("scheduler.min_lr_ratio ({}) must be positive with scheduler.name = \"inv\": the curve is made to reach it",
                            s.min_lr_ratio));
  }
  if (s.name == "power" && !(s.power_b < 0 && std::isfinite(s.power_b))) {
    findings.problem({"scheduler.power_b"}, format("scheduler.power_b ({}) must be negative and finite: the rate falls", s.power_b));
  }
}

void precisions_agree(const Job& job, Findings& findings) {
  const TrainConfig& t = job.config.train;
  if (t.param_dtype == "bf16" && t.mixed_precision != "bf16") {
    findings.problem({"train.param_dtype", "train.mixed_precision"},
                     format("train.param_dtype = \"bf16\" needs train.mixed_precision = \"bf16\", not \"{}\"", t.mixed_precision));
  }
  if (changed(job, "train.loss_scale") && t.mixed_precision != "fp16") {
    findings.warn({"train.loss_scale", "train.mixed_precision"},
                  format("train.loss_scale has no effect with train.mixed_precision = \"{}\"; only fp16 needs it", t.mixed_precision));
  }
}

void recomputation_says_what(const Job& job, Findings& findings) {
  const TrainConfig& t = job.config.train;
  const auto has = [&](const char* name) { return std::find(t.remat_save.begin(), t.remat_save.end(), name) != t.remat_save.end(); };
  if (!t.remat_save.empty() && t.activation_checkpointing != "selective") {
    findings.problem(
        {"train.remat_save", "train.activation_checkpointing"},
        format("train.remat_save is for train.activation_checkpointing = \"selective\", not \"{}\"", t.activation_checkpointing));
  }
  if (has("attention") && has("mlp")) {
    findings.problem(
        {"train.remat_save"},
        "train.remat_save keeps attention and mlp, so nothing is left to recompute; use train.activation_checkpointing = \"none\"");
  }
  if (t.remat_every > 1 && t.activation_checkpointing == "none") {
    findings.warn({"train.remat_every"}, "train.remat_every has no effect with train.activation_checkpointing = \"none\"");
  }
}

void target_needs_evaluation(const Job& job, Findings& findings) {
  if (job.config.eval.target_loss > 0 && !job.config.eval.enabled) {
    findings.problem(
        {"eval.target_loss", "eval.enabled"},
        format("eval.target_loss ({}) needs eval.enabled = true: only an evaluation can reach it", job.config.eval.target_loss));
  }
}

void averages_are_of_one_kind(const Job& job, Findings& findings) {
  const AveragingConfig& a = job.config.averaging;
  if (a.type != "none" && job.config.optimizer.name == "schedule_free_adamw") {
    findings.problem(
        {"averaging.type", "optimizer.name"},
        format("averaging.type = \"{}\" with optimizer.name = \"schedule_free_adamw\", which averages by itself; leave one of the "
               "two out",
               a.type));
  }
}

void patterns_compile(const Job& job, Findings& findings) {
  const Config& c = job.config;
  const std::vector<std::pair<std::string, const Strings*>> all{{"train.trainable", &c.train.trainable},
                                                                {"train.frozen", &c.train.frozen},
                                                                {"optimizer.decay_include", &c.optimizer.decay_include},
                                                                {"optimizer.decay_exclude", &c.optimizer.decay_exclude},
                                                                {"optimizer.muon_exclude", &c.optimizer.muon_exclude}};
  for (const auto& [key, patterns] : all) {
    for (const std::string& pattern : *patterns) {
      try {
        const NamePattern compiled(pattern, key);
      } catch (const Error& e) {
        findings.problem({key}, e.what());
      }
    }
  }
}

}  // namespace

std::vector<Rule> optimizer_rules() {
  return {optimizer_reads_its_keys, one_update_clip,         score_clip_fits_model,    shares_fit_schedule,
          after_needs_an_end,       cycles_fit_schedule,     schedule_has_its_numbers, precisions_agree,
          recomputation_says_what,  target_needs_evaluation, averages_are_of_one_kind, patterns_compile};
}

}  // namespace kf::config
