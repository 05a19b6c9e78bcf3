#include "run/other_workers.h"

#include <chrono>

#include "checkpoint/values.h"
#include "config/plan/batch_plan.h"
#include "config/tree/json.h"
#include "core/digest.h"
#include "run/resume.h"
#include "run/same_job.h"

namespace kf {
namespace {

/// Of the settings that all workers must have alike, and the program.
std::string job_digest(const RunContext& run) {
  Digest digest;
  digest.add(running_program());
  digest.add(config::to_json(config::Node(job_values(run.config)), config::JsonStyle::exact));
  for (const CodeFile& file : run.code) {
    digest.add(file.functions);
    digest.add(file.rest);
  }
  return digest.hex();
}

/// Tokens of this worker in `steps` updates.
std::int64_t tokens_of(const RunContext& run, std::int64_t steps) {
  const config::TrainConfig& train = run.config.train;
  const config::BatchPlan batches(train, run.plan.data_ranks);
  return batches.first_piece(batches.first_micro(steps)) * batches.piece() * train.seq_len * run.world.share().world;
}

/// Whether workers have it in common: all but what is of a run's own folder and clock.
bool is_common(const std::string& key) { return key != kWall && key != kSinks && key != kPrompt && key != kStop; }

std::string text_of(const config::Table& values) {
  config::Table common;
  for (const auto& [key, value] : values) {
    if (is_common(key)) {
      common[key] = value;
    }
  }
  return config::to_json(config::Node(std::move(common)), config::JsonStyle::exact);
}

/// `text` in place of what `values` has in common with the worker that said it.
void take_values(const std::string& text, config::Table& values) {
  const config::Node told = config::parse_json(text, "what another worker keeps", config::JsonStyle::exact);
  config::Table out = *told.table();
  for (const auto& [key, value] : values) {
    if (!is_common(key)) {
      out[key] = value;
    }
  }
  values = std::move(out);
}

}  // namespace

void hand_on(Trainee& trainee, const std::function<config::Table()>& kept) {
  trainee.outer->hand_on([&] { return text_of(kept()); });
}

Share drawing_share(const RunContext& run) {
  const Group& cp = run.world.along(Axis::cp);
  return {run.share.rank * cp.size() + cp.rank(), run.share.world * cp.size()};
}

std::unique_ptr<Meeting> meet_other_workers(const RunContext& run, Trainee& trainee, CheckpointState& state) {
  const std::optional<WorkerPlace>& place = run.request.launch.worker();
  if (!place) {
    return nullptr;
  }
  const config::DilocoConfig& diloco = run.config.diloco;
  auto meeting = std::make_unique<Meeting>(
      *place, MeetingRules{job_digest(run), diloco.min_workers, std::chrono::seconds(diloco.timeout_sec)}, run.world);
  const auto carry = [&](Group& group) { return trainee.outer->carry(group, [&] { return text_of(state.values); }); };
  const auto take = [&](Group& group) {
    take_values(carry(group), state.values);
    trainee.hooks.load(values_under(state.values, kHooks));
  };
  const std::int64_t before = state.run.step, now = meeting->join(trainee.outer->progress(before), carry, take);
  state.run.step = now;
  state.run.tokens += tokens_of(run, now) - tokens_of(run, before);
  trainee.outer->use(*meeting, now);
  return meeting;
}

}  // namespace kf
