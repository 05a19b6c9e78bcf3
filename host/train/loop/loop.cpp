#include "train/loop/loop.h"

#include <cmath>
#include <utility>

#include "checkpoint/reader.h"
#include "config/plan/sinks.h"
#include "core/crash.h"
#include "core/error.h"
#include "core/log.h"
#include "core/running.h"
#include "core/source_watch.h"
#include "generate/answer_stream.h"
#include "metrics/names/names.h"
#include "train/eval/evaluate.h"
#include "train/loop/agree.h"

namespace kf {

TrainLoop::TrainLoop(LoopMembers parts, LoopOptions options, CheckpointState state)
    : parts_(std::move(parts)),
      options_(std::move(options)),
      steering_(parts_.model, parts_.stepper, parts_.train_data, std::move(parts_.phases), options_.world),
      state_(std::move(state)),
      watch_(options_.metrics, parts_.model.parameters(), parts_.optimizer, options_.world),
      histograms_(config::histogram_interval(options_.metrics), parts_.model.parameters(), options_.world),
      wall_(WallTime::system_clock(), options_.began),
      step_times_(options_.metrics.slow_step_factor),
      heartbeat_(options_.heartbeat, options_.metrics.heartbeat_sec, steady_clock(), options_.pulse),
      saver_(options_.saves, parts_.checkpoints, parts_.writer, options_.world) {
  const config::Table& kept = state_.values;
  if (const config::Node& course = value_at(kept, kCourse); !course.is_null()) {
    steering_.load(course, state_.run.step);
    wall_.load(value_at(kept, kWall));
  } else {
    steering_.begin();
  }
  context_.eval = eval_in(kept);
  fill_context();
  if (const std::string why = options_.run_ahead > 0 ? parts_.stepper.why_not_ahead() : ""; !why.empty()) {
    log::info("train.run_ahead = {} has no effect, every step is read before the next begins: {}", options_.run_ahead, why);
    options_.run_ahead = 0;
  }
  if (const config::Node& train = value_at(kept, kTrain); !train.is_null()) {
    parts_.stepper.load(train);
  }
}

void TrainLoop::fill_context() {
  context_.n_params = count_parameters(parts_.model.parameters());
  context_.max_steps = options_.max_steps;
  context_.model = &parts_.model;
  context_.data = &parts_.train_data;
  context_.controls = &controls_;
  context_.run_dir = options_.run_dir;
  context_.leads = options_.world.leads();
  context_.warns_of_files = !options_.saves.stops_on_error;
  context_.loss = [this] {
    const StepResult& step = last_step("loss");
    return step.has_loss() ? std::optional(step.loss) : std::nullopt;
  };
  context_.grad_norm = [this] {
    last_step("grad_norm");
    if (context_.gradients_lent) {  // an earlier hook of this event may have written into them
      last_.grad_norm = parts_.stepper.gradient_norm();
    }
    return last_.has_loss() ? std::optional(last_.grad_norm) : std::nullopt;
  };
  context_.metrics = [this] {
    last_step("metrics");
    StepRow shown = row();
    shown.extra.insert(shown.extra.end(), extra_.begin(), extra_.end());
    return shown;
  };
  context_.log = [this](const Values& values) {
    for (const std::string& source : parts_.train_data.sources()) {
      for (const auto& [name, value] : values) {
        KF_CHECK(!is_source_key(name, source), Code::script,
                 "ctx:log: '{}' is the row's own number of the source '{}'; choose another name", name, source);
      }
    }
    extra_.insert(extra_.end(), values.begin(), values.end());
  };
  context_.log_text = [this](const std::string& name, const std::string& text) {
    parts_.sinks.text({state_.run.step, name, valid_utf8(text)});  // what a model says need not be text
  };
  context_.evaluate = [this] { return evaluate_now(/*all=*/true); };
  context_.report = [this](double value) {
    if (options_.report && options_.report(state_.run.step, value)) {
      controls_.stop = "pruned";
    }
  };
  context_.generate_defaults = options_.generate;
  context_.generate = [this](const std::vector<std::string>& prompts, const GenerateOptions& options) {
    return generate_now(prompts, options);
  };
}

/// The counters as they are, for who looks at the run.
void TrainLoop::show_counters() {
  context_.state = state_.run;
  context_.epoch = steering_.epoch(state_.run.step);
  context_.seconds = seconds();
  context_.phase = steering_.phase();
}

/// Calls the hooks of an event, where there are any: most steps have none.
void TrainLoop::fire(Event event) {
  if (!parts_.hooks.wants(event, state_.run.step)) {
    return;
  }
  show_counters();
  parts_.hooks.call(event, context_);
  folder_.restore("a hook");
}

RunResult TrainLoop::run(Inbox& inbox) {
  inbox_ = &inbox;
  const RunIsOn on;
  const double begin = parts_.throughput.seconds();
  try {
    steps();
  } catch (const std::exception& e) {
    try {
      settle_all();  // what was done before is told
    } catch (const std::exception& earlier) {
      log::error("in a step before: {}", earlier.what());
    }
    context_.message = e.what();
    try {
      heartbeat_.now("error", state_.run.step);
      fire(Event::error);
    } catch (const std::exception& second) {  // the first one is what the user must see
      log::error("in on_error: {}", second.what());
    }
    throw;
  }
  RunResult told = result(parts_.throughput.seconds() - begin);
  parts_.sinks.end(told);
  if (options_.prompt != nullptr) {
    options_.prompt->over(told);
  }
  return told;
}

/// What parts have kept is given back before the first of them is called.
void TrainLoop::begin_parts() {
  parts_.states.load(values_under(state_.values, kParts));  // not earlier: making the loop may still make and call parts
  // The others have none, and what sinks keep is of the run itself: its rows that wait, its name elsewhere.
  if (options_.world.leads() && options_.own_checkpoint) {
    parts_.sinks.load(value_at(state_.values, kSinks));
  }
  parts_.sinks.begin(parts_.run);
}

void TrainLoop::steps() {
  begin_parts();
  fire(Event::train_begin);
  if (!options_.resumed_from.empty()) {
    context_.path = options_.resumed_from;
    outcome_.checkpoint = options_.own_checkpoint ? options_.resumed_from : "";
    fire(Event::checkpoint_load);
    saver_.catch_up(options_.resumed_from);
  }
  if (state_.run.step == 0) {
    start_fresh();
  }
  wall_.started();
  heartbeat_.now("start", state_.run.step);
  boundary(false, /*first=*/true);
  hand_on();
  begin_traffic();
  while (!finished() && !told_to_stop()) {
    one_step();
  }
  settle_all();
  save_last();
  saver_.await_copies();
  KF_CHECK(!told_unwritten_, Code::checkpoint, "step {}: {} (checkpoint.on_error = 'warn' goes on)", state_.run.step, unwritten_text());
  context_.message = stop_reason_;
  fire(Event::train_end);
  heartbeat_.now(state_.run.step >= options_.max_steps ? "complete" : "stopped", state_.run.step);
}

/// Several ranks have agreed at the boundary. One has nobody to wait for: what came while the boundary saved costs it no further step.
bool TrainLoop::told_to_stop() {
  if (options_.world.size() == 1) {
    agree_on_requests();
  }
  return told_to_stop_;
}

/// What any rank asks for, all ask for. What the clock asks for is the leader's to say.
void TrainLoop::agree_on_requests() {
  if (options_.world.leads() && saver_.is_due_by_clock()) {
    controls_.saves.emplace_back();
  }
  std::vector<RunMessage> messages = inbox_->take();
  if (options_.saves.stops_on_error && !told_unwritten_ && !parts_.sinks.fault().empty()) {
    messages.push_back({RunMessage::Kind::unwritten});
  }
  Requests agreed = agree({std::move(controls_), std::move(messages)}, options_.world.all());
  controls_ = std::move(agreed.controls);
  for (const RunMessage& message : agreed.messages) {
    follow(message);
  }
}

void TrainLoop::follow(const RunMessage& message) {
  switch (message.kind) {
    case RunMessage::Kind::stop: told_to_stop_ = true; break;
    case RunMessage::Kind::unwritten: told_to_stop_ = told_unwritten_ = true; break;
    case RunMessage::Kind::chunk:
    case RunMessage::Kind::reload: said_.push_back(message); break;
  }
}

/// Why the run ends where a file of its folder cannot be written.
std::string TrainLoop::unwritten_text() const {
  const std::string fault = options_.world.leads() ? parts_.sinks.fault() : "rank 0 cannot write a file of the run";
  const std::string saved =
      saver_.step() == state_.run.step
          ? format("; the run is saved, with the rows that wait, in {}: the same command goes on from there", outcome_.checkpoint)
          : "";
  return (fault.empty() ? "a file of the run could not be written for a while" : fault) + saved;
}

void TrainLoop::start_fresh() {
  if (options_.eval_at_start && !parts_.eval_sets.empty()) {
    run_eval(/*all=*/true);
    publish_eval();
  }
  if (options_.save_at_start) {
    save();
  }
  parts_.sinks.step_over(0);
}

double TrainLoop::rate(std::int64_t step) const { return options_.lr * parts_.schedule.factor(step) * steering_.lr_scale(step); }

void TrainLoop::count_tokens(const StepResult& result) {
  KF_CHECK(!__builtin_add_overflow(state_.run.tokens, result.tokens, &state_.run.tokens), Code::other,
           "step {}: the count of tokens does not fit in 64 bits", state_.run.step);
}

void TrainLoop::one_step() {
  const std::int64_t step = state_.run.step;
  const Running running("training", nullptr, step + 1);
  if (options_.profile != nullptr && options_.profile->covers(step + 1) != options_.profile->covers(step)) {
    settle_all();
  }
  const Profile::Step profiled(options_.profile, step + 1);
  if (may_run_ahead(step)) {
    run_ahead(step);
    return;
  }
  settle_all();
  const double lr = rate(step);
  context_.lr = lr;
  fire(Event::step_begin);
  const double begin = parts_.throughput.seconds();
  const StepResult result = parts_.stepper.run(steering_.data(), step, lr, callbacks(step));
  const double seconds = parts_.throughput.seconds() - begin;
  if (stepped_) {  // the first batch of a process cannot be ready
    waited_ += result.data_seconds;
    stepped_for_ += seconds;
  }
  ++state_.run.step;
  keep_time(result, seconds);
  count_tokens(result);
  state_.run.skipped += result.skipped.empty() ? 0 : 1;
  last_ = result;
  stepped_ = true;
  parts_.throughput.add(result.tokens);
  after_step(result);
}

/// Whether the next update would need data behind the end (data.epochs, data.mix_stop).
bool TrainLoop::data_over() const { return parts_.stepper.first_micro(state_.run.step + 1) > steering_.end(); }

void TrainLoop::after_step(const StepResult& result) {
  const std::int64_t step = state_.run.step;
  if (!result.skipped.empty()) {
    log::warn("step {}: no update, {}", step, result.skipped);
  }
  keep_incident(result);
  row_.reset();
  if (logs(step)) {  // before the hooks of the step: what they cost belongs to the next row
    row_ = make_row(parts_.throughput.take());
  }
  if (watch_.due(step) && result.has_loss()) {
    const Values watched = watch_.take();
    row_->extra.insert(row_->extra.end(), watched.begin(), watched.end());
  }
  if (histograms_.due(step) && result.has_loss()) {
    parts_.sinks.histograms(histograms_.take(step));
  }
  fire(Event::step_end);
  agree_on_requests();
  hear();
  const bool due = step % options_.eval_interval == 0 || step == options_.max_steps;
  const bool asked = std::exchange(controls_.eval, false);
  const bool evaluated = result.abort.empty() && !parts_.eval_sets.empty() && (asked || due);
  if (evaluated) {
    run_eval(asked);  // before the row, so that what on_eval_end logs stands in it
  }
  if (logs(step) || any_of(!extra_.empty(), options_.world.all()) || !result.abort.empty()) {
    log_row();
  }
  if (evaluated) {
    publish_eval();
  }
  KF_CHECK(result.abort.empty(), Code::other, "{}", result.abort);
  boundary(save_due(step));
  hand_on();
  answer();
  parts_.sinks.step_over(state_.run.step);
}

void TrainLoop::hand_on() {
  if (options_.hand_on) {
    options_.hand_on([this] { return values(); });
  }
}

/// Between two steps: what hooks asked for, the change of phase, what is to be saved.
void TrainLoop::boundary(bool due_save, bool first) {
  if (saver_.is_under_way() && saver_.is_over()) {
    end_save();
  }
  agree_on_requests();
  const Controls asked = std::exchange(controls_, {});
  controls_.eval = asked.eval;  // by on_train_begin or on_eval_end: with the next step
  if (asked.stop) {
    stopped_by_hook_ = true;
    stop_reason_ = *asked.stop;
  }
  steering_.apply(asked, state_.run.step);
  if (asked.rollback && !finished()) {
    roll_back(*asked.rollback);
    return;
  }
  change_phase(!first);
  if (state_.run.step > 0 && (due_save || (finished() && (!complete() || options_.save_at_end)))) {
    save();
  }
  for (const std::string& name : asked.saves) {
    if (!name.empty() || saver_.step() != state_.run.step) {
      save(name);
    }
  }
  export_models(asked.exports);
}

/// Phases change before the checkpoint is written, so that a resumed run begins in the new one.
void TrainLoop::change_phase(bool ask) {
  if (finished() || steering_.is_steady()) {
    return;
  }
  show_counters();
  if (steering_.advance(context_, ask)) {
    if (const std::string phase = steering_.phase(); !phase.empty()) {
      log::info("step {}: phase '{}'", state_.run.step, phase);
    } else {
      log::info("step {}: the last phase is over; the settings of the job itself hold", state_.run.step);
    }
    fire(Event::phase_change);
  }
}

/// To the newest checkpoint, without the data since then.
void TrainLoop::roll_back(const std::string& reason) {
  end_save();
  const std::int64_t from = state_.run.step;
  const std::optional<fs::path> newest = newest_checkpoint();
  if (!newest) {
    log::warn("step {}: no roll-back ({}): there is no checkpoint yet", from, reason);
    return;
  }
  const CheckpointReader reader(*newest, checked_before);  // by the leader, who looked for it
  const CheckpointState& saved = reader.state();
  reader.load(parts_.model, parts_.optimizer);
  state_.run = saved.run;
  begin_traffic();
  if (const config::Node& train = value_at(saved.values, kTrain); !train.is_null()) {
    parts_.stepper.load(train);
  }
  steering_.roll_back(value_at(saved.values, kCourse), from, saved.run.step);
  wall_.roll_back(value_at(saved.values, kWall));
  parts_.states.roll_back(values_under(saved.values, kParts));  // hooks go on as they are: they know why the run went back
  parts_.sinks.rewind(saved.run.step);
  saver_.roll_back(saved.run.step);
  log::warn("step {}: rolled back to {} ({}); the data since then are left out", from, newest->filename().string(), reason);
  context_.path = newest->string();
  fire(Event::checkpoint_load);
}

/// As the leader finds it.
std::optional<fs::path> TrainLoop::newest_checkpoint() const {
  const std::optional<fs::path> mine = options_.world.leads() ? parts_.checkpoints.newest() : std::nullopt;
  const std::string told = options_.world.all().tell(mine ? mine->string() : "").front();
  return told.empty() ? std::nullopt : std::optional<fs::path>(told);
}

/// What the parts of the run keep, as they are now.
config::Table TrainLoop::values() const {
  config::Table out;
  put_under(out, kHooks, parts_.hooks.state());
  put_under(out, kParts, parts_.states.state());
  out[kTrain] = parts_.stepper.state();
  out[kCourse] = steering_.state();
  if (context_.eval) {
    put_eval(out, *context_.eval);
  }
  if (options_.metrics.goodput) {
    out[kWall] = wall_.state();
  }
  if (config::Node sinks = parts_.sinks.state(); !sinks.is_null()) {
    out[kSinks] = std::move(sinks);
  }
  if (options_.prompt != nullptr && options_.prompt->kept() > 0) {
    out[kPrompt] = config::Node(options_.prompt->kept());
  }
  if (stopped_by_hook_) {
    out[kStop] = config::Node(stop_reason_);
  }
  return out;
}

RunResult TrainLoop::result(double seconds) const {
  RunResult r = outcome_;
  r.status = state_.run.step >= options_.max_steps || (data_over() && !stopped_by_hook_) ? "complete" : "stopped";
  r.reason = stopped_by_hook_ ? stop_reason_ : told_to_stop_ && r.status == "stopped" ? "signal" : "";
  r.step = state_.run.step;
  r.tokens = state_.run.tokens;
  r.skipped = state_.run.skipped;
  r.seconds = seconds;
  return r;
}

}  // namespace kf
