#include <algorithm>

#include "config/rules/rules.h"
#include "core/text.h"

namespace kf::config {
namespace {

std::string key_of(std::size_t i, const char* field) { return format("phases[{}].{}", i, field); }

void one_kind_of_phases(const Job& job, Findings& findings) {
  const DataConfig& d = job.config.data;
  if (!job.config.phases.empty() && (!d.phases.empty() || d.anneal_start_step > 0)) {
    findings.problem(
        {"phases", d.phases.empty() ? "data.anneal_start_step" : "data.phases"},
        format("phases and {} are both given; write everything in phases", d.phases.empty() ? "data.anneal_start_step" : "data.phases"));
  }
}

void phases_end(const Job& job, Findings& findings) {
  const std::vector<PhaseEntry>& phases = job.config.phases;
  std::int64_t until = 0;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const PhaseEntry& phase = phases[i];
    if (phase.steps && phase.until_step) {
      findings.problem({key_of(i, "steps"), key_of(i, "until_step")}, format("phases[{}] gives steps and until_step; keep one", i));
    }
    if (i + 1 < phases.size() && !phase.steps && !phase.until_step && phase.phase.empty()) {
      findings.problem({"phases"}, format("phases[{}]{} has no end: give it steps or until_step, or make it the last", i,
                                          phase.name.empty() ? "" : " (" + brief(Node(phase.name)) + ")"));
    }
    if (phase.until_step && *phase.until_step <= until) {
      findings.problem({key_of(i, "until_step")},
                       format("phases[{}].until_step ({}) must be above {}, where the phase before ends", i, *phase.until_step, until));
    }
    until = phase.until_step.value_or(until);
  }
}

void phases_fit_the_model(const Job& job, Findings& findings) {
  for (std::size_t i = 0; i < job.config.phases.size(); ++i) {
    const std::optional<std::int64_t>& seq_len = job.config.phases[i].seq_len;
    if (seq_len && *seq_len > job.config.model.max_seq_len) {
      findings.problem(
          {key_of(i, "seq_len"), "model.max_seq_len"},
          format("phases[{}].seq_len ({}) exceeds model.max_seq_len ({}); raise model.max_seq_len or lower the phase's seq_len", i,
                 *seq_len, job.config.model.max_seq_len));
    }
  }
}

void one_owner_of_the_batch(const Job& job, Findings& findings) {
  const TrainConfig& t = job.config.train;
  for (std::size_t i = 0; i < job.config.phases.size(); ++i) {
    if (job.config.phases[i].batch_size && (t.global_batch_size || !t.batch_schedule.empty())) {
      const char* other = t.global_batch_size ? "train.global_batch_size" : "train.batch_schedule";
      findings.problem({key_of(i, "batch_size"), other},
                       format("phases[{}].batch_size and {} both set the batch; keep one of them", i, other));
    }
  }
}

}  // namespace

std::vector<Rule> phase_rules() { return {one_kind_of_phases, phases_end, phases_fit_the_model, one_owner_of_the_batch}; }

}  // namespace kf::config
