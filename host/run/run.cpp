#include "run/run.h"

#include <c10/util/Exception.h>

#include <functional>
#include <iterator>
#include <memory>
#include <optional>

#include "config/plan/batch_plan.h"
#include "config/plan/derived.h"
#include "config/rules/unbuilt.h"
#include "config/show/emit.h"
#include "core/error.h"
#include "core/log.h"
#include "metrics/jsonl.h"
#include "metrics/peak.h"
#include "parallel/world.h"
#include "run/answer_ends.h"
#include "run/attached.h"
#include "run/exports.h"
#include "run/header.h"
#include "run/memory_check.h"
#include "run/other_workers.h"
#include "run/outputs.h"
#include "run/process_settings.h"
#include "run/rate_change.h"
#include "run/requeue.h"
#include "run/run_checks.h"
#include "run/run_context.h"
#include "run/run_data.h"
#include "run/run_end.h"
#include "run/run_folders.h"
#include "run/run_parts.h"
#include "run/stall_watch.h"
#include "run/start.h"
#include "run/stored_result.h"
#include "run/strategies.h"
#include "run/trainee.h"
#include "train/loop/incidents.h"
#include "train/loop/loop.h"
#include "train/loop/probe.h"
#include "train/step/cut_batch.h"

namespace kf {
namespace {

/// Everything that could be wrong has been looked at: now the leader makes the run's folder, and its log and record say what begins here.
void open_folder(const RunContext& run, const RunData& data, const Start& start, const Trainee& trainee,
                 const CheckpointManager& checkpoints, std::optional<RunFolders>& folders, RunEnd& end) {
  const RunRequest& request = run.request;
  run.world.all().barrier();  // nobody has found anything wrong
  if (!folders) {
    run.world.all().barrier();  // the folder is there
    end.open_log(run.plan.dir, run.world.rank());
    return;
  }
  folders->make(checkpoints, start.nothing_saved);
  const std::string job = config::to_toml(run.config);
  keep_earlier_job(run.plan.dir, job);
  write_file_atomic(run.plan.dir / "job.toml", job);
  write_file_atomic(run.plan.dir / "data.fingerprint", data.record);
  end.open(run.plan.dir, {request.loaded, request.file, run.code, request.scope.script().arguments(), run.plan.name, run.device().str(),
                          start.resume.state.run.step, start.nothing_saved, start.nothing_saved ? "" : folders->copied_id(),
                          request.from_folder, run.world.size(), request.call, data.record});
  folders->sign_copies(end.id());
  if (request.opened) {
    request.opened(run.plan.dir);
  }
  run.world.all().barrier();
  for (const std::string& line : config::keys_without_effect(request.loaded)) {
    log::warn("{}", line);
  }
  for (const std::string& note : run.plan.notes) {
    log::info("{}", note);
  }
  say_changes(start.resume);
  if (start.resumes()) {
    if (const std::string rise = rate_rise(start.resume, run.config, run.registries, *trainee.schedule, run.plan.data_ranks);
        !rise.empty()) {
      log::warn("{}", rise);
    }
  }
  if (!data.eval_sets.empty() && data.tokenizer == nullptr) {
    log::info("evaluations have no bits per byte: nothing turns these ids into text (data.tokenizer_path)");
  }
}

StepperOptions stepper_options(const RunContext& run, const Trainee& trainee) {
  const config::Config& config = run.config;
  StepperOptions out;
  out.batches = config::BatchPlan(config.train, run.plan.data_ranks);
  out.grad_clip_norm = config.train.grad_clip_norm;
  out.device = run.device();
  out.max_steps = run.plan.max_steps;
  out.batch_size = config.train.batch_size;
  out.seq_len = config.train.seq_len;
  out.guard = config.train;
  out.seed = static_cast<std::uint64_t>(config.train.seed);
  if (config.train.mixed_precision == "fp16") {
    out.loss_scale = config.train.loss_scale;
  }
  out.qk_clip_tau = config.optimizer.qk_clip ? config.optimizer.qk_clip_tau : 0;
  out.world = run.trainers;
  out.share = drawing_share(run);
  out.cp_order = sequence_order(config.distributed.cp_order);
  out.outer = trainee.outer;
  return out;
}

SaverOptions saver_options(const config::CheckpointConfig& config) {
  return {config.async_mode != "disabled", config.async_mode == "async_with_pinned_mem", config.on_error == "stop",
          config.interval_minutes};
}

LoopOptions loop_options(const RunContext& run, const RunData& data, const Start& start, const Trainee& trainee, const Outputs& outputs,
                         std::optional<RunFolders>& folders) {
  const config::Config& config = run.config;
  LoopOptions out;
  out.max_steps = run.plan.max_steps;
  out.lr = config.optimizer.lr;
  out.log_interval = config.metrics.log_interval;
  out.eval_interval = config.eval.interval;
  out.eval_at_start = config.eval.at_start;
  out.save_due = save_rule(config, run.registries);
  out.export_interval = config.checkpoint.hf_export_interval;
  if (out.export_interval > 0) {  // an export is made of a checkpoint
    out.save_due = [due = out.save_due, every = out.export_interval](std::int64_t step) { return due(step) || step % every == 0; };
  }
  out.export_checkpoint = exporter_of(run);
  out.save_at_start = milestone_rule(config, run.registries)(0);
  out.save_at_end = config.checkpoint.on_completion;
  out.saves = saver_options(config.checkpoint);
  out.device = run.device();
  out.resumed_from = start.resumes() ? start.resume.checkpoint.string() : "";
  out.own_checkpoint = start.resumes() && !start.nothing_saved;
  out.target_loss = config.eval.target_loss;
  out.eval_in_chunks = trainee.objective->spares_logits();
  out.report = run.request.report;
  out.generate = generate_options(config.generate);
  out.max_seq_len = config.model.max_seq_len;
  out.prompts = {false, config.data.add_bos};
  out.run_dir = run.plan.dir;
  out.ends = answer_ends(config, data.tokenizer.get());
  out.vocab_size = config.model.vocab_size;
  out.seed = static_cast<std::uint64_t>(config.train.seed);
  out.mtp_head = config.eval.mtp_head;
  // What is repeated is said behind its step, before the next one begins.
  out.run_ahead = config.run.steering.empty() ? config.train.run_ahead.value_or(run.device().is_cpu() ? 0 : 1) : 0;
  out.seconds_before = outputs.seconds_before;
  out.before_save = [&folders] {
    if (folders) {
      folders->check_there();
    }
    log::mend_file();
  };
  out.metrics = config.metrics;
  out.metrics.heartbeat_sec = run.world.leads() ? config.metrics.heartbeat_sec : 0;
  out.heartbeat = run.plan.dir / "heartbeat.json";
  out.world = run.world;
  out.began = run.began;
  out.probe = run.request.probe;
  out.writes_checkpoints = run.request.only_until == 0;
  return out;
}

RunInfo run_info(const RunContext& run, const Trainee& trainee, const CheckpointState& state, const RunEnd& end) {
  return {run.config, run.plan, end.id(), state.job_toml, count_parameters(trainee.model->parameters()), state.run.step};
}

/// Tells how far a loop came, also when an error ends it.
struct Reached {
  RunEnd& end;
  const TrainLoop& loop;
  ~Reached() { end.reached(loop.step()); }
};

/// Signals, what is said to the run, the end of a run that only looks, and that of a run whose workers have become too few.
class RunInbox final : public Inbox {
 public:
  RunInbox(const RunContext& run, const TrainLoop& loop, const Meeting* workers, Attached* attached)
      : signals_(run.config.train.shutdown_timeout_sec),
        loop_(loop),
        workers_(workers),
        attached_(attached),
        last_(run.request.only_until > 0 ? run.request.only_until : -1) {}

  std::vector<RunMessage> take() override {
    std::vector<RunMessage> out = signals_.take();
    if (attached_ != nullptr) {
      std::vector<RunMessage> said = attached_->take(loop_.step());
      out.insert(out.end(), std::make_move_iterator(said.begin()), std::make_move_iterator(said.end()));
    }
    if ((last_ >= 0 && loop_.step() >= last_) || (workers_ != nullptr && !workers_->ended().empty())) {
      out.push_back({RunMessage::Kind::stop});
    }
    return out;
  }
  double seconds_left() const override { return signals_.seconds_left(); }

 private:
  SignalInbox signals_;
  const TrainLoop& loop_;
  const Meeting* workers_;  // null where they are always there
  Attached* attached_;      // null: nobody can say anything
  std::int64_t last_;       // update; -1: the run goes to its own end
};

/// Throws Code::communication where too few workers were left for that.
RunResult train_to_the_end(const RunContext& run, TrainLoop& loop, Meeting* workers, Attached* attached) {
  RunInbox inbox(run, loop, workers, attached);
  RunResult result = loop.run(inbox);
  if (workers != nullptr) {
    KF_CHECK(workers->ended().empty(), Code::communication, "{}", workers->ended());
    if (result.status == "complete") {
      workers->finish(result.step);
    }
  }
  return result;
}

/// The run's end of what is said to it; null where it only looks.
std::unique_ptr<Attached> attached_to(const RunContext& run, const CheckpointState& state, const Start& start) {
  return run.request.only_until == 0 ? std::make_unique<Attached>(run, state, start.resumes() && !start.nothing_saved) : nullptr;
}

StallOptions stall_options(const RunContext& run) {
  const config::RunConfig& config = run.config.run;
  return {config.stall_timeout_sec, config.on_stall == "abort", run.plan.dir / "incidents", run.world.rank()};
}

/// Null where none is wanted.
std::unique_ptr<Profile> make_profile(const RunContext& run, const Trainee& trainee) {
  const config::ProfilingConfig& config = run.config.profiling;
  const ProfileOptions options{config.start_step, config.end_step, run.plan.trace_dir, run.device(), run.world, run.request.only_until > 0};
  return config.enable ? std::make_unique<Profile>(options, *trainee.model, *trainee.optimizer) : nullptr;
}

/// A file of the run's folder fails as a save does.
void by_on_error(const RunContext& run, const char* without, const std::function<void()>& use) {
  try {
    use();
  } catch (const Error& e) {
    KF_CHECK(run.config.checkpoint.on_error == "warn", Code::checkpoint, "{}: {}", without, e.what());
    log::warn("{}: {}", without, e.what());
  }
}

/// The result, with the rows from before a resume; its loss is the last one that there was.
RunResult finish(const RunContext& run, RunResult result, const RunEnd& end) {
  run.world.all().barrier();  // the leader has written its last row
  if (const std::optional<fs::path> rows = rows_of(run)) {
    by_on_error(run, "the rows of the run are left out of its result", [&] { result.history = read_rows(*rows); });
  }
  for (auto row = result.history.rbegin(); !result.loss && row != result.history.rend(); ++row) {
    const auto* const step = std::get_if<StepRow>(&*row);
    result.loss = step != nullptr && step->has_loss ? std::optional(step->loss) : std::nullopt;
  }
  if (run.world.leads()) {
    by_on_error(run, "the run is over and saved, but its result is not written", [&] { store_result(result, end.id(), run.plan.dir); });
  }
  if (run.request.only_until == 0) {
    say_end(result, run.request, run.world.leads());
  }
  return result;
}

void say_header(const RunContext& run, const RunData& data, const Trainee& trainee, const Peak& peak) {
  if (run.world.leads()) {
    print_header({run.request, run.config, run.plan, *trainee.model, data.train->describe(), *trainee.schedule, run.compute, peak,
                  memory_text(trainee.memory, trainee.room)});
  }
}

/// The line of the run: each stage takes what the earlier ones gave, and knows what of it is the leader's alone.
RunResult train(RunContext& run, RunEnd& end, std::optional<RunFolders>& folders) {
  const RunRequest& request = run.request;
  RunData data = open_data(run);  // first: most jobs that cannot start have them to blame
  CheckpointManager checkpoints(checkpoint_options(run));
  CheckpointWriter writer(checkpoints, frozen_source(run));
  if (run.world.leads()) {
    folders.emplace(run.config, run.plan, run.fresh);
  }
  const Start start = decide_start(run, folders, checkpoints, data);
  if (start.complete()) {
    return already_complete(run, start);
  }
  check_exports(run);
  Trainee trainee = make_trainee(run, data, start);
  open_folder(run, data, start, trainee, checkpoints, folders, end);
  CheckpointState state = starting_state(run, data, start, trainee);
  const std::unique_ptr<Meeting> workers = meet_other_workers(run, trainee, state);
  if (!state.kernels.is_null()) {
    end.note("products", state.kernels);
  }
  const Peak peak = peak_of(run.compute, run.config.train);
  say_header(run, data, trainee, peak);
  Outputs outputs = open_outputs(run, start.resumes() || state.run.step > 0 ? std::optional(state.run.step) : std::nullopt);
  Throughput throughput(config::flops_per_token(run.config.model, run.config.train.seq_len),
                        peak.flops * static_cast<double>(run.world.size()));
  Stepper stepper(*trainee.model, *trainee.optimizer, *trainee.objective, stepper_options(run, trainee));
  LoopMembers parts{*trainee.model,
                    *trainee.optimizer,
                    stepper,
                    *data.train,
                    data.eval_sets,
                    *trainee.schedule,
                    data.tokenizer.get(),
                    trainee.hooks,
                    outputs.sinks,
                    checkpoints,
                    writer,
                    throughput,
                    trainee.average,
                    std::move(trainee.phases),
                    request.scope.states(),
                    trainee.sampler.get(),
                    run_info(run, trainee, state, end)};
  LoopOptions options = loop_options(run, data, start, trainee, outputs, folders);
  StallWatch stalls(stall_options(run));
  options.pulse = [&stalls](const std::string& doing, std::int64_t step) { stalls.alive(doing, step); };
  Incidents incidents(run.plan.dir / "incidents", run.config.run.keep_incidents, state.job_toml, run.world);
  options.incidents = request.only_until == 0 ? &incidents : nullptr;
  const std::unique_ptr<Profile> profile = make_profile(run, trainee);
  options.profile = profile.get();
  const std::unique_ptr<Attached> attached = attached_to(run, state, start);
  options.prompt = attached.get();
  if (workers != nullptr) {
    options.hand_on = [&trainee](const std::function<config::Table()>& kept) { hand_on(trainee, kept); };
  }
  TrainLoop loop(std::move(parts), std::move(options), std::move(state));
  const Reached reached{end, loop};
  return finish(run, train_to_the_end(run, loop, workers.get(), attached.get()), end);
}

}  // namespace

RunResult run_job(const RunRequest& request, const Registries& registries) {
  const ProcessSettings process(request.loaded.config.run);
  RunContext run = open_run(request, registries);
  RunEnd end;
  std::optional<RunFolders> folders;  // locked until the record says how the run ended: who finds the lock free can trust it
  const auto failed = [&](const char* message) {
    run.world.end(message);  // the waits of the other ranks throw it
    end.failed(message);
  };
  try {
    RunResult result = train(run, end, folders);
    end.well(result);
    folders.reset();
    if (run.config.run.requeue && result.reason == "signal" && run.world.leads() && !request.of_sweep && request.only_until == 0) {
      requeue();
    }
    return result;
  } catch (const c10::Error& e) {
    failed(e.what_without_backtrace());
    throw;
  } catch (const std::exception& e) {
    failed(e.what());
    throw;
  }
}

}  // namespace kf
