#include "run/other_workers.h"

#include <chrono>

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

}  // namespace

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
  const auto carry = [&trainee](Group& group) { trainee.outer->carry(group); };
  const std::int64_t before = state.run.step, now = meeting->join(trainee.outer->progress(before), carry, carry);
  state.run.step = now;
  state.run.tokens += tokens_of(run, now) - tokens_of(run, before);
  trainee.outer->use(*meeting, now);
  return meeting;
}

}  // namespace kf
