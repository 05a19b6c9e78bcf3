#include "config/rules/pipeline.h"

#include <algorithm>
#include <cmath>

#include "config/plan/batch_plan.h"
#include "config/plan/budget.h"
#include "config/plan/pipeline.h"
#include "core/text.h"

namespace kf::config {
namespace {

constexpr const char* kInterleaved = "interleaved_1f1b";

constexpr std::int64_t kMostPieces = 1024;  // whose schedule is worked out for a warning

/// One process that was asked to be several: ranks_make_up_the_world says so.
bool lacks_processes(const Job& job) { return job.world == 1; }

void stages_fit_layers(const Job& job, Findings& findings) {
  const DistributedConfig& d = job.config.distributed;
  const std::int64_t layers = job.config.model.n_layers, chunks = pipeline_chunks(d);
  if (lacks_processes(job) || d.pp == 1) {
    return;
  }
  if (d.pp > layers) {
    findings.problem({"distributed.pp", "model.n_layers"},
                     format("distributed.pp ({}) cannot exceed model.n_layers ({}): a stage holds at least one layer", d.pp, layers));
  } else if (d.pp * chunks > layers) {
    findings.problem({"distributed.pp_chunks", "distributed.pp", "model.n_layers"},
                     format("distributed.pp_chunks ({}) pieces on each of distributed.pp ({}) ranks are more than model.n_layers ({}): a "
                            "piece holds at least one layer",
                            chunks, d.pp, layers));
  }
}

void layers_of_pieces_add_up(const Job& job, Findings& findings) {
  const DistributedConfig& d = job.config.distributed;
  if (lacks_processes(job) || d.pp == 1 || d.pp_layers.empty()) {
    return;
  }
  const std::int64_t pieces = d.pp * pipeline_chunks(d), layers = job.config.model.n_layers;
  std::int64_t sum = 0;
  for (const std::int64_t count : d.pp_layers) {
    sum = sum < layers + 1 ? sum + count : sum;  // no overflow
  }
  if (static_cast<std::int64_t>(d.pp_layers.size()) != pieces) {
    const bool chunks = pipeline_chunks(d) > 1;
    findings.problem({"distributed.pp_layers", "distributed.pp"},
                     format("distributed.pp_layers must have an entry for each of the {} pieces of the model (distributed.pp{}); it has {}",
                            pieces, chunks ? " times distributed.pp_chunks" : "", d.pp_layers.size()));
  } else if (sum != layers) {
    findings.problem({"distributed.pp_layers", "model.n_layers"},
                     format("distributed.pp_layers must add up to model.n_layers ({}); the entries add up to {}", layers,
                            sum > layers ? "more" : std::to_string(sum)));
  }
}

void settings_of_pipelines_act(const Job& job, Findings& findings) {
  const DistributedConfig& d = job.config.distributed;
  for (const char* key : {"distributed.pp_schedule", "distributed.pp_layers"}) {
    if (d.pp == 1 && findings.given(key)) {
      findings.warn({key}, format("{} has no effect: there is one pipeline stage (distributed.pp = 1)", key));
    }
  }
  if ((d.pp == 1 || d.pp_schedule != kInterleaved) && findings.given("distributed.pp_chunks")) {
    findings.warn({"distributed.pp_chunks"},
                  format("distributed.pp_chunks = {} has no effect without distributed.pp_schedule = \"{}\" and distributed.pp above 1",
                         d.pp_chunks, kInterleaved));
  }
}

void micro_batches_fill_the_pipeline(const Job& job, Findings& findings) {
  const DistributedConfig& d = job.config.distributed;
  const std::int64_t micros = BatchPlan(job.config.train, data_ranks(d, job.world.value_or(1))).micros(0);
  const std::int64_t pieces = d.pp * pipeline_chunks(d);
  if (lacks_processes(job) || d.pp == 1 || micros >= d.pp || pieces > std::min(job.config.model.n_layers, kMostPieces)) {
    return;
  }
  const double bubble = bubble_of(plan_pipeline(d.pp_schedule, d.pp, d.pp_chunks, micros));
  findings.warn({"train.grad_accum_steps", "distributed.pp"},
                format("an update has {} micro-batches for {} pipeline stages (distributed.pp), whose ranks wait {} % of their time; "
                       "more of them (train.grad_accum_steps) with a smaller train.batch_size fill the pipeline",
                       micros, d.pp, std::llround(100 * bubble)));
}

void stages_take_everything_else(const Job& job, Findings& findings) {
  const Config& c = job.config;
  if (lacks_processes(job) || c.distributed.pp == 1) {
    return;
  }
  if (c.optimizer.name == "sophia_h") {
    findings.problem(
        {"optimizer.name", "distributed.pp"},
        format("optimizer.name = \"sophia_h\" needs second derivatives of the loss, whose graph ends at the border of a pipeline "
               "stage (distributed.pp = {}); use another optimizer, or another axis",
               c.distributed.pp));
  }
  if (!c.checkpoint.save_frozen.value_or(true)) {
    findings.problem({"checkpoint.save_frozen", "distributed.pp"},
                     format("checkpoint.save_frozen = false needs all frozen weights on every rank, and of a pipeline each has its stage "
                            "(distributed.pp = {}); leave the key out",
                            c.distributed.pp));
  }
}

}  // namespace

std::vector<Rule> pipeline_rules() {
  return {stages_fit_layers, layers_of_pieces_add_up, settings_of_pipelines_act, micro_batches_fill_the_pipeline,
          stages_take_everything_else};
}

}  // namespace kf::config
