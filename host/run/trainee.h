#pragma once
// What is trained, and what trains it.

#include <memory>

#include "core/machine_memory.h"
#include "generate/generate.h"
#include "model/model.h"
#include "optim/averaging.h"
#include "optim/diloco.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "run/run_context.h"
#include "run/run_data.h"
#include "run/start.h"
#include "train/loop/hooks.h"
#include "train/loop/memory_estimate.h"
#include "train/loop/phase.h"
#include "train/step/objective.h"

namespace kf {

/// A model by its shapes, and whether its job has room.
struct PlannedModel {
  std::shared_ptr<Model> model;
  MemoryEstimate memory;  // of the whole job, and
  FreeMemory room;        // what there was before it began
};

/// The model without storage. Throws Code::config where the job does not fit into memory (run.memory_check).
PlannedModel plan_model(const RunContext& run);

struct Trainee : PlannedModel {
  std::unique_ptr<Optimizer> optimizer;
  Averaged* average = nullptr;  // the optimizer, where it keeps a running average
  Diloco* outer = nullptr;      // the optimizer, where workers train apart
  std::unique_ptr<Loss> loss;
  std::unique_ptr<Objective> objective;  // of the loss
  std::unique_ptr<Schedule> schedule;
  std::unique_ptr<TokenChooser> sampler;
  Phases phases;
  Hooks hooks;
};

/// The parts that the job names, with weights as they start, or those of checkpoint.init_from; a checkpoint's come with `starting_state`.
/// What does not fit into memory is refused before anything is allocated. Nothing is written.
Trainee make_trainee(const RunContext& run, const RunData& data, const Start& start);

/// The state that a new run begins with, or that of the checkpoint, loaded into the trainee; with what this process adds to it. Chooses
/// the kernels.
CheckpointState starting_state(const RunContext& run, const RunData& data, const Start& start, Trainee& trainee);

}  // namespace kf
