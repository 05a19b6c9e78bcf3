#include "run/run.h"

#include <c10/util/Exception.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <map>

#include "checkpoint/files/head_source.h"
#include "checkpoint/manager.h"
#include "config/plan/batch_plan.h"
#include "config/plan/derived.h"
#include "config/plan/plan.h"
#include "config/rules/unbuilt.h"
#include "config/rules/unsaid.h"
#include "config/show/emit.h"
#include "core/error.h"
#include "core/log.h"
#include "core/log_keep.h"
#include "core/name_pattern.h"
#include "core/plain_file.h"
#include "core/source_watch.h"
#include "core/wrap.h"
#include "data/loader/eval_sets.h"
#include "data/loader/loader.h"
#include "metrics/console.h"
#include "metrics/jsonl.h"
#include "metrics/peak.h"
#include "model/transformer/build.h"
#include "optim/averaging.h"
#include "run/answer_ends.h"
#include "run/device.h"
#include "run/header.h"
#include "run/invocation.h"
#include "run/job_tokenizer.h"
#include "run/memory_check.h"
#include "run/phases.h"
#include "run/precision_note.h"
#include "run/rate_change.h"
#include "run/resume.h"
#include "run/run_checks.h"
#include "run/run_folders.h"
#include "run/run_kernels.h"
#include "run/run_parts.h"
#include "run/run_record.h"
#include "run/stored_result.h"
#include "run/strategies.h"
#include "train/loop/loop.h"

namespace kf {
namespace {

/// What becomes of rows of the vocabulary that checkpoint.init_from lacks.
VocabRows vocab_rows(const config::Config& config) {
  const std::string& how = config.checkpoint.init_vocab;
  const VocabRows::Fill fill = how == "mean" ? VocabRows::Fill::mean : how == "init" ? VocabRows::Fill::init : VocabRows::Fill::none;
  return {fill, config.model.vocab_size, head_source(config.checkpoint.init_head)};
}

/// What this build cannot do although the settings allow it is said before anything starts.
void refuse_unbuilt(const config::Loaded& loaded, const config::Plan& plan) {
  KF_CHECK(loaded.config.train.mixed_precision != "fp8", Code::config,
           "train.mixed_precision = \"fp8\" needs a GPU of compute capability 8.9 or more{}; use \"bf16\"",
           plan.device == "cpu" ? ", and the device is cpu" : ", and is not built yet");
}

void say_without_effect(const config::Loaded& loaded) {
  for (const std::string& line : config::keys_without_effect(loaded)) {
    log::warn("{}", line);
  }
}

void say_notes(const config::Plan& plan) {
  for (const std::string& note : plan.notes) {
    log::info("{}", note);
  }
}

/// "high" is TF32, "medium" bf16, where the device has them; global to the process, so every run sets it.
void set_matmul_precision(const config::TrainConfig& train) { at::globalContext().setFloat32MatmulPrecision(train.matmul_precision); }

/// What scripts say of how their weights are to be split, once: with one rank nothing is.
void say_sharding_hints(Model& model) {
  std::map<std::string_view, std::int64_t> counts;
  for (const ParameterPtr& parameter : model.parameters()) {
    if (parameter->shard) {
      ++counts[kShardNames[static_cast<std::size_t>(*parameter->shard)]];
    }
  }
  std::vector<std::string> words;
  for (const auto& [name, count] : counts) {
    words.push_back(format("{} {}", count, name));
  }
  if (!words.empty()) {
    log::info("sharding hints of weights: {}; they have no effect on one rank", join(words, ", "));
  }
}

void say_remarks(const Resume& resume) {
  for (const std::string& remark : resume.remarks) {
    log::warn("{}", remark);
  }
}

void say_changes(const Resume& resume) {
  for (const Difference& d : resume.changed) {
    log::info("{} {} (checkpoint) -> {} (now)", d.key, d.before, d.after);
  }
  say_remarks(resume);
}

/// A line on standard output, folded to the width of a terminal, and in the log.
void say(const std::string& line) {
  const std::size_t terminal = terminal_columns(STDOUT_FILENO);
  std::cout << wrapped(line, terminal > 0 ? terminal : std::string::npos, 2) << std::endl;
  log::keep(line);
}

RunResult already_complete(const Resume& resume, const fs::path& dir) {
  say_remarks(resume);
  // Of a checkpoint that another run made (checkpoint.load_path), that one's folder tells.
  const fs::path teller = path_exists(dir / "metrics.jsonl") ? dir : run_folder_of(resume.checkpoint).value_or(dir);
  RunResult result = stored_result(teller, resume.checkpoint, resume.state);
  const bool stopped = result.status == "stopped";
  std::cout << (stopped ? "already stopped" + (result.reason.empty() ? "" : " (" + result.reason + ")") : "already complete") << ": "
            << result.step << " steps, " << grouped(result.tokens) << " tokens, in " << resume.checkpoint.string()
            << (stopped ? "; run.go_on = true goes on, run.fresh = true starts over" : "") << '\n'
            << std::flush;
  return result;
}

/// How long the run had trained at the last row up to `step`; 0 where the rows do not tell.
double seconds_until(const fs::path& rows, std::int64_t step) {
  double seconds = 0;
  try {
    for (const auto& row : path_exists(rows) ? read_rows(rows) : decltype(RunResult::history)()) {
      const auto* const one = std::get_if<StepRow>(&row);
      seconds = one != nullptr && one->step <= step ? one->seconds : seconds;
    }
  } catch (const Error&) {
    return seconds;  // who opens the file for writing says what is wrong with it
  }
  return seconds;
}

std::string skipped_text(std::int64_t skipped) { return skipped == 0 ? "" : format(" ({} without an update)", grouped(skipped)); }

void say_end(const RunResult& result, const RunRequest& request) {
  if (result.status == "complete") {
    say(format("training complete: {} steps{}, {} tokens in {}; {}", result.step, skipped_text(result.skipped), grouped(result.tokens),
               human_seconds(result.seconds), result.checkpoint));
    return;
  }
  const bool signal = result.reason == "signal";
  const std::string again = !signal            ? ""
                            : request.of_sweep ? "; its sweep goes on with it"
                                               : "; `" + command_again() + "` goes on from there";
  say(format("stopped at step {}{}{}; saved {}{}", result.step, skipped_text(result.skipped),
             result.reason.empty() ? ""
             : signal              ? " by a signal"
                                   : ": " + result.reason,
             result.checkpoint, again));
  if (signal) {
    note_stopped_by_signal();
  }
}

/// Opens the log, and says there when and how this process was started.
void open_log(const fs::path& dir) {
  log::open_file(dir / "log.txt");
  std::error_code ignored;
  log::keep(format("start {}: {}, in {}, process {}", utc_now(), shell_line(invocation()), fs::current_path(ignored),
                   static_cast<std::int64_t>(::getpid())));
}

/// How a run ends stands in its log and in its record, whichever way that is.
class RunEnd {
 public:
  /// The run's folder is there: what it is started with is written down.
  void open(const fs::path& dir, const RunStart& start) {
    open_log(dir);
    steps_ = start.step;
    record_.emplace(dir, start);
  }
  const std::string& id() const { return record_->id(); }
  void well(const RunResult& result) {
    if (record_) {
      log::keep(format("end {}: {}", utc_now(), result.status));
      record_->end(result.status, result.step);
      log::close_file();
    }
  }
  void failed(const std::string& message) {
    if (record_) {
      log::keep(message, log::Level::error);
      log::keep(format("end {}: failed", utc_now()));
      record_->end("failed", steps_, message);
      log::close_file();
    }
  }
  void reached(std::int64_t step) { steps_ = step; }

 private:
  std::optional<RunRecord> record_;
  std::int64_t steps_ = 0;
};

/// Tells how far a loop came, also when an error ends it.
struct Reached {
  RunEnd& end;
  const TrainLoop& loop;
  ~Reached() { end.reached(loop.step()); }
};

StepperOptions stepper_options(const config::Config& config, const config::Plan& plan, at::Device device) {
  StepperOptions out;
  out.batches = config::BatchPlan(config.train, plan.data_ranks);
  out.grad_clip_norm = config.train.grad_clip_norm;
  out.z_loss_weight = config.train.z_loss_weight;
  out.device = device;
  out.mtp_layers = config.model.mtp_layers;
  out.mtp_loss_weight = config.train.mtp_loss_weight;
  out.max_steps = plan.max_steps;
  out.batch_size = config.train.batch_size;
  out.seq_len = config.train.seq_len;
  out.guard = config.train;
  out.seed = static_cast<std::uint64_t>(config.train.seed);
  if (config.train.mixed_precision == "fp16") {
    out.loss_scale = config.train.loss_scale;
  }
  out.qk_clip_tau = config.optimizer.qk_clip ? config.optimizer.qk_clip_tau : 0;
  return out;
}

/// The state that a new run starts from, or the one of the checkpoint, loaded into the live objects.
CheckpointState starting_state(const Resume& resume, Model& model, Optimizer& optimizer, Hooks& hooks, const std::string& frozen_from) {
  if (resume.kind == Resume::Kind::resume) {
    CheckpointState state = CheckpointManager::load(resume.checkpoint, model, optimizer, frozen_from);
    hooks.load(state.hooks);
    log::info("resumed from {}: step {}, {} tokens", resume.checkpoint, state.run.step, grouped(state.run.tokens));
    return state;
  }
  return {};
}

/// The working folder, as JSON can have it.
std::string folder_text() {
  std::error_code ignored;
  const std::string folder = fs::current_path(ignored).string();
  return is_utf8(folder) ? folder : "";
}

RunResult train(const RunRequest& request, const Registries& registries, RunEnd& end) {
  const double began = WallTime::system_clock()();
  const config::Config& config = request.loaded.config;
  const ComputeDevice compute = open_device(config.run.device);  // before anything asks torch for CUDA: the answer is remembered
  const at::Device device = compute.device;
  config::Plan plan = config::make_plan(request.loaded, request.file, 1, device.is_cuda());
  refuse_unbuilt(request.loaded, plan);
  for (const std::string& line : config::unsaid(request.loaded)) {
    log::warn("{}", line);
  }

  // Data first: it is read, never written, and most jobs that cannot start have it to blame.
  const std::unique_ptr<Loader> train_data = make_train_loader(config, {0, 1, &registries, device.is_cuda() && config.data.pin_memory});
  end_with_data(config, *train_data, plan);
  std::vector<EvalSet> eval_sets = make_eval_sets(config, {0, 1, &registries});
  const std::unique_ptr<Tokenizer> tokenizer = tokenizer_of(config, registries);
  const std::vector<SourceWatch> tokenizer_files = watch_tokenizer(config.data.tokenizer_path);

  CheckpointOptions checkpoint_options;
  checkpoint_options.dir = plan.checkpoint_dir;
  checkpoint_options.keep_last = config.checkpoint.keep_last_n;
  checkpoint_options.keep_forever = milestone_rule(config, registries);
  checkpoint_options.frozen_from = config.checkpoint.save_frozen ? "" : config.checkpoint.init_from.value_or("");
  CheckpointManager checkpoints(checkpoint_options);
  if (config.run.fresh) {
    start_over(config, plan);
  }
  RunFolders folders(plan);
  folders.tidy();
  std::optional<fs::path> newest = checkpoints.newest();
  const bool nothing_saved = !newest;
  if (nothing_saved && config.checkpoint.load_path) {
    newest = CheckpointManager::find(*config.checkpoint.load_path);
  }
  spare_job_file(plan.dir);
  // A trial's folder holds its code, too, but what makes a sweep another one is its own question.
  const std::vector<CodeFile> compared = request.of_sweep ? std::vector<CodeFile>() : request.code;
  const Resume resume = decide_resume({newest, config, compared, code_makes_identity(config, registries.catalog()), plan.max_steps,
                                       data_record_of(*train_data, eval_sets)});
  if (resume.kind == Resume::Kind::complete) {
    return already_complete(resume, plan.dir);
  }

  const std::shared_ptr<Model> model = build_model(config, registries);  // shapes alone: nothing is allocated yet
  const MemoryEstimate memory = training_memory(config, model->parameters());
  const FreeMemory room = room_on(compute.device);
  check_memory(config.run, "the job", memory, room, memory.total() > room.bytes ? memory_savers(config, model->parameters()) : Savers{});
  set_matmul_precision(config.train);
  materialize(*model, device, compute_type(config.train), static_cast<std::uint64_t>(config.train.seed),
              config.train.param_dtype == "bf16" ? at::kBFloat16 : at::kFloat);
  sum_gradients_in(config.train.grad_dtype == "bf16" ? at::kBFloat16 : at::kFloat, model->parameters());
  std::unique_ptr<Optimizer> optimizer = make_optimizer(config, registries, *model);
  Averaged* average = nullptr;
  if (config.averaging.type != "none") {
    auto averaged = std::make_unique<Averaged>(std::move(optimizer), model->parameters(), config.averaging);
    average = averaged.get();
    optimizer = std::move(averaged);
  }
  const std::unique_ptr<Loss> loss = make_loss(config, registries);
  const std::unique_ptr<Schedule> schedule = make_schedule(config, registries, plan.max_steps);
  const std::unique_ptr<TokenSampler> sampler = sampler_of(config, registries);
  check_plan(config, registries, *model);
  say_sharding_hints(*model);
  Phases phases = make_phases(config, registries, plan.max_steps);
  check_phases(phases, *model, *train_data);
  Hooks hooks = make_hooks(config, registries, request.hook);

  // Before the folder is made: weights that do not fit leave nothing behind.
  if (resume.kind != Resume::Kind::resume && config.checkpoint.init_from) {
    const std::string& kind = config.checkpoint.init_weights;
    CheckpointManager::load_weights(*config.checkpoint.init_from, *model, vocab_rows(config),
                                    weight_kind_named(kind, "checkpoint.init_weights"));
    log::info("weights from {}{}", *config.checkpoint.init_from, kind == "saved" ? "" : " (" + kind + ")");
  }
  folders.make(checkpoints, nothing_saved);
  write_file_atomic(plan.dir / "job.toml", config::to_toml(config));
  end.open(plan.dir, {request.loaded, request.file, request.code, request.arguments, plan.name, device.str(), resume.state.run.step,
                      nothing_saved, request.from_folder});
  say_without_effect(request.loaded);
  say_notes(plan);
  say_changes(resume);
  if (resume.kind == Resume::Kind::resume) {
    if (const std::string rise = rate_rise(resume, config, registries, *schedule); !rise.empty()) {
      log::warn("{}", rise);
    }
  }
  if (!eval_sets.empty() && tokenizer == nullptr) {
    log::info("evaluations have no bits per byte: nothing turns these ids into text (data.tokenizer_path)");
  }

  CheckpointState state = starting_state(resume, *model, *optimizer, hooks, checkpoint_options.frozen_from);
  state.data_fingerprint = data_record_of(*train_data, eval_sets);
  state.job = config::Node(job_values(config));
  state.folder = folder_text();
  state.code = code_digests(compared);
  state.max_steps = plan.max_steps;
  state.job_toml = config::to_toml(config);
  state.kernels = choose_kernels(*model, config.train, compute_type(config.train), state.kernels);
  if (const std::string note = precision_note(config, compute_type(config.train), device); !note.empty()) {
    log::info("{}", note);
  }

  const Peak peak = peak_of(compute, config.train);
  print_header({request, config, plan, *model, train_data->describe(), *schedule, compute, peak, memory_text(memory, room)});
  Throughput throughput(config::flops_per_token(config.model, config.train.seq_len), peak.flops);
  if (resume.kind != Resume::Kind::resume) {
    keep_old_rows(plan.dir / "metrics.jsonl");
  }
  const double seconds_before = resume.kind == Resume::Kind::resume ? seconds_until(plan.dir / "metrics.jsonl", state.run.step) : 0;
  JsonlSink jsonl(plan.dir / "metrics.jsonl", state.run.step);
  ConsoleOptions console_options = stdout_options();
  console_options.max_steps = plan.max_steps;
  console_options.start_step = state.run.step;
  ConsoleSink console(std::cout, console_options);

  Stepper stepper(*model, *optimizer, *loss, stepper_options(config, plan, device));
  const std::vector<std::unique_ptr<Sink>> own_sinks = make_sinks(config, registries, plan.dir, state.run.step);
  LoopParts parts{*model, *optimizer,         stepper,     *train_data, eval_sets, *schedule, tokenizer.get(),
                  hooks,  {&jsonl, &console}, checkpoints, throughput,  average};
  for (const std::unique_ptr<Sink>& sink : own_sinks) {
    parts.sinks.push_back(sink.get());
  }
  parts.sampler = sampler.get();
  parts.states = request.states;
  parts.phases = std::move(phases);
  LoopOptions options{plan.max_steps,
                      config.optimizer.lr,
                      config.metrics.log_interval,
                      config.eval.interval,
                      config.eval.at_start,
                      save_rule(config, registries),
                      milestone_rule(config, registries)(0),
                      device,
                      resume.kind == Resume::Kind::resume ? resume.checkpoint.string() : "",
                      config.eval.target_loss,
                      loss->takes_hidden(),
                      request.report,
                      generate_options(config.generate),
                      config.model.max_seq_len,
                      {false, config.data.add_bos},
                      plan.dir,
                      config.train.shutdown_timeout_sec};
  options.ends = answer_ends(config, tokenizer.get());
  options.vocab_size = config.model.vocab_size;
  options.seed = static_cast<std::uint64_t>(config.train.seed);
  options.mtp_head = config.eval.mtp_head;
  options.seconds_before = seconds_before;
  options.before_save = [&folders] {
    folders.check_there();
    log::mend_file();
  };
  options.metrics = config.metrics;
  options.heartbeat = plan.dir / "heartbeat.json";
  options.began = began;
  TrainLoop loop(std::move(parts), std::move(options), std::move(state));
  const Reached reached{end, loop};
  RunResult result = loop.run();
  result.history = read_rows(plan.dir / "metrics.jsonl");  // those before a resume, too
  for (auto row = result.history.rbegin(); !result.loss && row != result.history.rend(); ++row) {
    const auto* const step = std::get_if<StepRow>(&*row);
    result.loss = step != nullptr && step->has_loss ? std::optional(step->loss) : std::nullopt;
  }
  store_result(result, end.id(), plan.dir);
  say_end(result, request);
  return result;
}

}  // namespace

RunResult run_job(const RunRequest& request, const Registries& registries) {
  RunEnd end;
  try {
    RunResult result = train(request, registries, end);
    end.well(result);
    return result;
  } catch (const c10::Error& e) {
    end.failed(e.what_without_backtrace());
    throw;
  } catch (const std::exception& e) {
    end.failed(e.what());
    throw;
  }
}

}  // namespace kf
