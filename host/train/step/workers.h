#pragma once
// What workers that train apart (optim/diloco.h) tell each other of a step: numbers for its row, and what each must find again.

#include "config/tree/node.h"
#include "parallel/group.h"
#include "train/step/stepper.h"

namespace kf {

/// Losses, norms and further numbers become means over the workers that have them (a worker without a label that counts has none); tokens
/// and labels are added up. What must end one worker (`abort`) ends all, with the words of the first one that says so. Whether the worker
/// has moved its weights, and why not, stays its own.
void mean_over_workers(StepResult& result, Group& workers);

/// A list of what each worker says.
config::Node told_by_workers(const config::Node& mine, Group& workers);
/// The entry of a worker in a table with such a list, `workers`; the table itself where there is none or it has fewer entries.
const config::Table* own_of_workers(const config::Table& state, std::int64_t worker);

}  // namespace kf
