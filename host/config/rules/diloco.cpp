// Workers that train apart.

#include "config/rules/rules.h"
#include "core/text.h"

namespace kf::config {
namespace {

void workers_are_replicas(const Job& job, Findings& findings) {
  const Config& c = job.config;
  if (c.diloco.interval > 0 && c.distributed.dp_replicate == 1) {
    findings.problem({"diloco.interval", "distributed.dp_replicate"},
                     format("diloco.interval ({}) needs workers: set distributed.dp_replicate, which is {}, to their number",
                            c.diloco.interval, c.distributed.dp_replicate));
  }
}

void workers_can_be_there(const Job& job, Findings& findings) {
  const Config& c = job.config;
  if (c.diloco.interval > 0 && c.diloco.min_workers > c.distributed.dp_replicate) {
    findings.problem({"diloco.min_workers", "distributed.dp_replicate"},
                     format("diloco.min_workers ({}) is more than there are workers: distributed.dp_replicate is {}", c.diloco.min_workers,
                            c.distributed.dp_replicate));
  }
}

void options_need_an_interval(const Job& job, Findings& findings) {
  if (job.config.diloco.interval > 0) {
    return;
  }
  for (const char* key : {"diloco.outer_lr", "diloco.outer_momentum", "diloco.nesterov", "diloco.exchange_dtype", "diloco.min_workers",
                          "diloco.timeout_sec"}) {
    if (findings.given(key)) {
      findings.warn({key}, format("{} has no effect: diloco.interval is 0", key));
    }
  }
}

/// It moves a point of its own besides the weights, which an exchange of weights would leave behind.
void weights_are_all_that_moves(const Job& job, Findings& findings) {
  if (job.config.diloco.interval > 0 && job.config.optimizer.name == "schedule_free_adamw") {
    findings.problem({"diloco.interval", "optimizer.name"},
                     "diloco.interval does not go with optimizer.name = 'schedule_free_adamw', which moves a second point besides the "
                     "weights; take another optimizer, or diloco.interval = 0");
  }
}

}  // namespace

std::vector<Rule> diloco_rules() {
  return {workers_are_replicas, workers_can_be_there, options_need_an_interval, weights_are_all_that_moves};
}

}  // namespace kf::config
