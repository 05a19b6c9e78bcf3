// When a run saves, and what it keeps.
#include <cstdint>
#include <optional>

#include "config/rules/rules.h"
#include "core/text.h"

namespace kf::config {
namespace {

void window_runs_forward(const Job& job, Findings& findings) {
  const auto& window = job.config.checkpoint.dyn_ckpt_window;
  if (window && window->stop < window->start) {
    findings.problem(
        {"checkpoint.dyn_ckpt_window.stop", "checkpoint.dyn_ckpt_window.start"},
        format("checkpoint.dyn_ckpt_window.stop ({}) must be >= checkpoint.dyn_ckpt_window.start ({})", window->stop, window->start));
  }
}

void keep_rules_follow_each_other(const Job& job, Findings& findings) {
  const List<KeepRule>& rules = job.config.checkpoint.keep;
  std::int64_t before = 0;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const bool last = i + 1 == rules.size();
    if (!rules[i].until && !last) {
      findings.problem({"checkpoint.keep"}, format("checkpoint.keep[{}] has no until, so checkpoint.keep[{}] would never begin: only the "
                                                   "last rule may leave it out",
                                                   i, i + 1));
    } else if (rules[i].until && *rules[i].until <= before) {
      findings.problem({"checkpoint.keep"}, format("checkpoint.keep[{}].until ({}) must be larger than that of the rule before ({})", i,
                                                   *rules[i].until, before));
    }
    before = rules[i].until.value_or(before);
  }
}

void best_has_a_number(const Job& job, Findings& findings) {
  const CheckpointConfig& c = job.config.checkpoint;
  constexpr std::string_view kStart = "eval.";
  if (!c.best_metric.starts_with(kStart) || c.best_metric.size() == kStart.size()) {
    findings.problem({"checkpoint.best_metric"},
                     format("checkpoint.best_metric ('{}') must be a number of the evaluation: 'eval.loss', 'eval.accuracy', "
                            "'eval.NAME.loss' of a set in eval.datasets",
                            c.best_metric));
  }
  if (c.best_k == 0) {
    for (const char* key : {"checkpoint.best_metric", "checkpoint.best_mode"}) {
      if (findings.given(key)) {
        findings.warn({key}, format("{} has no effect: checkpoint.best_k is 0", key));
      }
    }
  } else if (!job.config.eval.enabled) {
    findings.problem({"checkpoint.best_k", "eval.enabled"},
                     format("checkpoint.best_k ({}) compares evaluations, and there are none: set eval.enabled = true", c.best_k));
  } else if (c.keep_last_n <= 0) {
    findings.warn({"checkpoint.best_k", "checkpoint.keep_last_n"},
                  format("checkpoint.best_k has no effect: with checkpoint.keep_last_n = {} every checkpoint stays", c.keep_last_n));
  }
}

}  // namespace

std::vector<Rule> save_rules() { return {window_runs_forward, keep_rules_follow_each_other, best_has_a_number}; }

}  // namespace kf::config
