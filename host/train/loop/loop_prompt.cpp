// What is said to the run while it trains: done behind a step's hooks, on all ranks alike, answered by the leader.

#include <utility>

#include "core/running.h"
#include "model/own_draws.h"
#include "model/seed.h"
#include "train/loop/agree.h"
#include "train/loop/loop.h"

namespace kf {

/// What it asks for joins the requests of the step's hooks.
void TrainLoop::hear() {
  if (said_.empty()) {
    return;
  }
  parts_.throughput.pause();
  for (; !said_.empty(); said_.pop_front()) {
    answers_.emplace_back(said_.front(), carry_out(said_.front()));
  }
  parts_.throughput.resume();
  agree_on_requests();
}

/// A chunk that fails on any rank asks for nothing.
Outcome TrainLoop::carry_out(const RunMessage& said) {
  const Running running("what was said to the run", nullptr, state_.run.step);
  const OwnDraws draws(options_.device, mixed_seed(options_.seed, static_cast<std::uint64_t>(state_.run.step)), "attach");
  const Controls before = controls_;
  Prompt& prompt = *options_.prompt;
  show_counters();
  Outcome out = said.kind == RunMessage::Kind::chunk ? prompt.run(said, context_) : prompt.reload(said, parts_.hooks, context_);
  folder_.restore("kf-host attach");
  if (out.error.empty()) {
    try {
      steering_.check(controls_);  // else the boundary would throw it
    } catch (const Error& e) {
      out.error = e.what();
      out.code = e.code();
    }
  }
  const std::vector<std::string> errors = options_.world.all().tell(out.error);
  out.error = errors.front();
  for (std::size_t rank = 1; rank < errors.size(); ++rank) {
    if (!errors[rank].empty() && errors[rank] != errors.front()) {
      out.error += format("{}rank {}: {}", out.error.empty() ? "" : "\n", rank, errors[rank]);
    }
  }
  if (!out.error.empty()) {
    controls_ = before;
  }
  const bool repeated = said.asker == 0 && said.kind == RunMessage::Kind::chunk;
  if (any_of(out.changed || controls_ != before || repeated, options_.world.all())) {
    prompt.keep(said, state_.run.step);
  }
  return out;
}

/// Behind the boundary: what was asked for is done then.
void TrainLoop::answer() {
  for (const auto& [said, outcome] : std::exchange(answers_, {})) {
    options_.prompt->answer(said, outcome, state_.run.step);
  }
}

}  // namespace kf
