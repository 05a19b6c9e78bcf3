#include "train/loop.h"

#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "core/stop.h"
#include "metrics/memory.h"
#include "train/evaluate.h"
#include "train/generate.h"

namespace kf {

TrainLoop::TrainLoop(LoopParts parts, LoopOptions options, CheckpointState state)
    : parts_(std::move(parts)), options_(std::move(options)), state_(std::move(state)) {
  fill_context();
  if (!state_.train.is_null()) {
    parts_.stepper.load(state_.train);
  }
}

void TrainLoop::fill_context() {
  context_.n_params = count_parameters(parts_.model.parameters());
  context_.max_steps = options_.max_steps;
  context_.model = &parts_.model;
  context_.state = state_.run;
  context_.loss = [this] { return last_.loss(); };
  context_.grad_norm = [this] { return last_.grad_norm; };
  context_.log = [this](const std::vector<std::pair<std::string, double>>& values) {
    extra_.insert(extra_.end(), values.begin(), values.end());
  };
  context_.stop = [this](const std::string& reason) {
    stopped_by_hook_ = true;
    stop_reason_ = reason;
  };
  context_.request_save = [this](const std::string& name) { requested_saves_.push_back(name); };
  context_.generate = [this](const std::string& prompt, const GenerateOptions& options) {
    KF_CHECK(parts_.tokenizer != nullptr, Code::config,
             "text cannot be generated: data.tokenizer_path names no tokenizer for these tokens");
    return generate_text(parts_.model, *parts_.tokenizer, prompt, options, options_.device);
  };
}

RunResult TrainLoop::run() {
  const StopSignals signals;
  const double begin = parts_.throughput.seconds();
  try {
    steps();
  } catch (const std::exception& e) {
    context_.message = e.what();
    try {
      parts_.hooks.call(Event::error, context_);
    } catch (const std::exception& second) {
      log::error("on_error failed, too: {}", second.what());  // the first error is the one to know
    }
    throw;
  }
  for (Sink* sink : parts_.sinks) {
    sink->close();
  }
  return result(parts_.throughput.seconds() - begin);
}

void TrainLoop::steps() {
  parts_.hooks.call(Event::train_begin, context_);
  if (!options_.resumed_from.empty()) {
    context_.path = options_.resumed_from;
    parts_.hooks.call(Event::checkpoint_load, context_);
  }
  if (state_.run.step == 0) {
    start_fresh();
  }
  while (!finished() && !StopSignals::requested()) {
    one_step();
  }
  if (saved_step_ != state_.run.step) {
    save();
  }
  context_.message = stop_reason_;
  parts_.hooks.call(Event::train_end, context_);
}

void TrainLoop::start_fresh() {
  if (options_.eval_at_start && parts_.eval_data != nullptr) {
    run_eval();
  }
  if (options_.save_at_start) {
    save();
  }
  for (Sink* sink : parts_.sinks) {
    sink->step_over(0);
  }
}

void TrainLoop::one_step() {
  const std::int64_t step = state_.run.step;
  const double lr = options_.lr * parts_.schedule.factor(step) * parts_.train_data.lr_scale(step);
  context_.lr = lr;
  parts_.hooks.call(Event::step_begin, context_);
  const StepResult result = parts_.stepper.run(parts_.train_data, step, lr, callbacks(step));
  ++state_.run.step;
  state_.run.tokens += result.tokens;
  context_.state = state_.run;
  last_ = result;
  parts_.throughput.add(result.tokens);
  after_step(result);
}

Stepper::Callbacks TrainLoop::callbacks(std::int64_t step) {
  Stepper::Callbacks callbacks;
  if (parts_.hooks.wants(Event::micro_end, step)) {
    callbacks.micro_end = [this] { parts_.hooks.call(Event::micro_end, context_); };
  }
  if (parts_.hooks.wants(Event::backward_end, step)) {
    callbacks.backward_end = [this](const StepResult& result) {
      last_ = result;
      parts_.hooks.call(Event::backward_end, context_);
    };
  }
  return callbacks;
}

void TrainLoop::after_step(const StepResult& result) {
  const std::int64_t step = state_.run.step;
  if (!result.skipped.empty()) {
    log::warn("step {}: no update, {}", step, result.skipped);
  }
  parts_.hooks.call(Event::step_end, context_);
  if (step == 1 || step % options_.log_interval == 0 || step == options_.max_steps || !extra_.empty() || !result.abort.empty()) {
    log_row(result);
  }
  if (result.abort.empty() && parts_.eval_data != nullptr && (step % options_.eval_interval == 0 || step == options_.max_steps)) {
    run_eval();
  }
  KF_CHECK(result.abort.empty(), Code::other, "{}", result.abort);
  if (options_.save_due(step) || finished()) {
    save();
  }
  for (const std::string& name : std::exchange(requested_saves_, {})) {
    save(name);
  }
  for (Sink* sink : parts_.sinks) {
    sink->step_over(step);
  }
}

void TrainLoop::log_row(const StepResult& result) {
  parts_.hooks.call(Event::log, context_);
  const Rate rate = parts_.throughput.take();
  StepRow row;
  row.step = state_.run.step;
  row.loss = result.loss();
  row.ce = result.ce;
  row.z_loss = result.z_loss;
  row.aux_loss = result.aux_loss;
  row.grad_norm = result.grad_norm;
  row.lr = context_.lr;
  row.tokens = state_.run.tokens;
  row.tokens_per_sec = rate.tokens_per_sec;
  row.mfu = rate.mfu;
  row.memory_bytes = memory_bytes(options_.device);
  row.seconds = parts_.throughput.seconds();
  row.extra = parts_.model.metrics();
  if (result.mtp_loss) {
    row.extra.emplace_back("mtp_loss", *result.mtp_loss);
  }
  const auto logged = std::exchange(extra_, {});
  row.extra.insert(row.extra.end(), logged.begin(), logged.end());
  for (Sink* sink : parts_.sinks) {
    sink->step(row);
  }
  outcome_.loss = row.loss;
  outcome_.history.emplace_back(std::move(row));
}

void TrainLoop::run_eval() {
  parts_.throughput.pause();
  EvalResult eval = evaluate(parts_.model, parts_.optimizer, *parts_.eval_data, options_.eval_steps, options_.device, state_.run.step,
                             options_.eval_in_chunks);
  if (parts_.average != nullptr) {
    const WithRunningAverage average(*parts_.average);
    eval.ema = evaluate(parts_.model, parts_.optimizer, *parts_.eval_data, options_.eval_steps, options_.device, state_.run.step,
                        options_.eval_in_chunks)
                   .loss;
  }
  for (Sink* sink : parts_.sinks) {
    sink->eval(eval);
  }
  outcome_.history.emplace_back(eval);
  outcome_.eval = eval;
  context_.eval = eval;
  parts_.hooks.call(Event::eval_end, context_);
  if (options_.target_loss > 0 && eval.loss <= options_.target_loss) {
    context_.stop(format("the evaluation loss {} reached eval.target_loss ({})", eval.loss, options_.target_loss));
  }
  parts_.throughput.resume();
}

void TrainLoop::save(const std::string& name) {
  parts_.throughput.pause();
  state_.finished = finished();
  state_.hooks = parts_.hooks.state();
  state_.train = parts_.stepper.state();
  fs::path path;
  {
    const WithAverages averages(parts_.optimizer);
    path = parts_.checkpoints.save(state_, parts_.model, parts_.optimizer, name);
  }
  if (name.empty()) {
    saved_step_ = state_.run.step;
  }
  outcome_.checkpoint = path.string();
  context_.path = path.string();
  for (Sink* sink : parts_.sinks) {
    sink->saved(state_.run.step, path.string());
  }
  parts_.hooks.call(Event::checkpoint_save, context_);
  parts_.throughput.resume();
}

RunResult TrainLoop::result(double seconds) const {
  RunResult r = outcome_;
  r.status = state_.run.step >= options_.max_steps ? "complete" : "stopped";
  r.reason = stopped_by_hook_ ? stop_reason_ : StopSignals::requested() && r.status == "stopped" ? "signal" : "";
  r.step = state_.run.step;
  r.tokens = state_.run.tokens;
  r.seconds = seconds;
  return r;
}

}  // namespace kf
