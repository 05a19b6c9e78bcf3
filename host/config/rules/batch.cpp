// Rules over the size of an update.

#include <algorithm>

#include "config/plan/budget.h"
#include "config/rules/rules.h"
#include "core/text.h"

namespace kf::config {
namespace {

/// Sequences that all ranks take at a time; one rank where their number is unknown.
std::int64_t each_micro(const Job& job) {
  return job.config.train.batch_size * (job.world ? data_ranks(job.config.distributed, *job.world) : 1);
}

void one_way_to_size(const Job& job, Findings& findings) {
  const TrainConfig& t = job.config.train;
  const bool accumulates = findings.given("train.grad_accum_steps");
  if (t.global_batch_size && accumulates) {
    findings.problem(
        {"train.global_batch_size", "train.grad_accum_steps"},
        format("train.global_batch_size ({}) and train.grad_accum_steps ({}) are both given; the one follows from the other: give "
               "one of the two",
               *t.global_batch_size, t.grad_accum_steps));
  }
  if (t.batch_schedule.empty()) {
    return;
  }
  if (t.global_batch_size) {
    findings.problem(
        {"train.batch_schedule", "train.global_batch_size"},
        format("train.batch_schedule and train.global_batch_size ({}) are both given; give one of the two", *t.global_batch_size));
  }
  if (accumulates) {
    findings.problem(
        {"train.batch_schedule", "train.grad_accum_steps"},
        format("train.batch_schedule and train.grad_accum_steps ({}) are both given; the schedule says how many micro-batches an "
               "update has: leave train.grad_accum_steps out",
               t.grad_accum_steps));
  }
}

/// Sizes must go evenly over the ranks, and into micro-batches where the job wants it so.
void check_multiple(const Job& job, Findings& findings, const std::string& key, const std::string& name, std::int64_t size) {
  const std::int64_t each = each_micro(job);
  const std::int64_t batch_size = job.config.train.batch_size;
  if (each <= 0 || size <= 0 || size % each == 0) {
    return;
  }
  const std::int64_t ranks = each / batch_size;
  const bool divides = job.config.train.allow_nondivisible_batch;
  if (divides && size % ranks == 0) {
    return;
  }
  const std::int64_t unit = divides ? ranks : each;
  const std::int64_t below = size / unit * unit;
  const std::string micro = format("train.batch_size ({}){}", batch_size, ranks == 1 ? "" : format(" x {} data ranks", ranks));
  const std::string of = divides ? format("the {} data ranks", ranks) : micro;
  const std::string nearest = below == 0 ? format("is {}", unit) : format("are {} and {}", below, below + unit);
  findings.problem({key, "train.batch_size"}, format("{} ({}) must be a multiple of {}; the nearest {}{}", name, size, of, nearest,
                                                     divides ? "" : ", or set train.allow_nondivisible_batch = true"));
}

void sizes_are_whole_micro_batches(const Job& job, Findings& findings) {
  const TrainConfig& t = job.config.train;
  if (t.global_batch_size) {
    check_multiple(job, findings, "train.global_batch_size", "train.global_batch_size", *t.global_batch_size);
  }
  for (std::size_t i = 0; i < t.batch_schedule.size(); ++i) {
    check_multiple(job, findings, "train.batch_schedule", format("train.batch_schedule[{}].size", i), t.batch_schedule[i].size);
  }
}

void stages_ascend(const Job& job, Findings& findings) {
  const List<BatchStage>& stages = job.config.train.batch_schedule;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (i == 0 && stages[i].start != 0) {
      findings.problem({"train.batch_schedule"},
                       format("train.batch_schedule[0].start ({}) must be 0: the first stage says how the run begins", stages[i].start));
    } else if (i > 0 && stages[i].start <= stages[i - 1].start) {
      findings.problem({"train.batch_schedule"},
                       format("train.batch_schedule[{}].start ({}) must be larger than that of the stage before ({})", i, stages[i].start,
                              stages[i - 1].start));
    }
  }
  const std::int64_t steps = effective_max_steps(job.config, job.world.value_or(1));
  if (!stages.empty() && stages.back().start >= steps) {
    findings.warn({"train.batch_schedule", "train.max_steps"},
                  format("train.batch_schedule[{}].start ({}) is not before the run's end ({} steps): this stage never begins",
                         stages.size() - 1, stages.back().start, steps));
  }
}

}  // namespace

std::vector<Rule> batch_rules() { return {one_way_to_size, sizes_are_whole_micro_batches, stages_ascend}; }

}  // namespace kf::config
