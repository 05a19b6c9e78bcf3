#include "run/rate_change.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "config/load/load.h"
#include "config/load/toml.h"
#include "core/error.h"
#include "run/run_parts.h"

namespace kf {
namespace {

/// The job that the checkpoint was made with; nothing where it does not load any more, as without the parts of its script.
std::optional<config::Config> old_job(const CheckpointState& state, const Registries& registries) {
  config::Report report;
  std::optional<config::Table> job = config::parse_toml(state.job_toml, "job.toml", config::Origin::Kind::toml, report);
  if (!job) {
    return std::nullopt;
  }
  config::Request request;
  request.recipe = config::Node(std::move(*job), {config::Origin::Kind::recipe, "job.toml", 0, 0, {}});
  request.files_must_exist = false;
  config::Loaded loaded = config::load(request, registries.catalog());
  return loaded.report.problems.empty() ? std::optional(std::move(loaded.config)) : std::nullopt;
}

}  // namespace

std::string rate_rise(const Resume& resume, const config::Config& config, const Registries& registries, const Schedule& schedule,
                      std::int64_t data_ranks) {
  constexpr double kNoticed = 1.05;
  const std::int64_t step = resume.state.run.step;
  const std::optional<config::Config> old = step > 0 ? old_job(resume.state, registries) : std::nullopt;
  if (!old || registries.scheduler.get(old->scheduler.name).info.origin != "native") {
    return {};  // one of a script would add what it keeps to the run's state a second time
  }
  try {
    const std::int64_t old_steps = resume.state.max_steps > 0 ? resume.state.max_steps : old->train.max_steps;
    const std::unique_ptr<Schedule> before = make_schedule(*old, registries, {old_steps, data_ranks});
    const double last = old->optimizer.lr * before->factor(step - 1);
    const double planned = old->optimizer.lr * before->factor(step);
    const double next = config.optimizer.lr * schedule.factor(step);
    if (next <= kNoticed * std::max(last, planned)) {
      return {};
    }
    const std::string remedy =
        !config.scheduler.total_steps ? format("; scheduler.total_steps = {} keeps the schedule as it was", old_steps) : "";
    return format("the learning rate rises where the run goes on: step {} had {} of the peak, step {} has {} (lr {} -> {}){}", step,
                  fixed(last / old->optimizer.lr, 2), step + 1, fixed(next / config.optimizer.lr, 2), last, next, remedy);
  } catch (const Error&) {
    return {};  // nothing to compare with
  }
}

}  // namespace kf
