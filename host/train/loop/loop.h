#pragma once
// The training loop: step after step until the end, a stop, or an error. Knows interfaces only.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/manager.h"
#include "checkpoint/state.h"
#include "checkpoint/writer.h"
#include "core/working_folder.h"
#include "data/loader/eval_sets.h"
#include "data/loader/loader.h"
#include "data/tokenizer/tokenizer.h"
#include "generate/generate.h"
#include "metrics/heartbeat.h"
#include "metrics/run_result.h"
#include "metrics/sinks.h"
#include "metrics/step_times.h"
#include "metrics/throughput.h"
#include "metrics/wall_time.h"
#include "optim/averaging.h"
#include "optim/schedule.h"
#include "parallel/traffic.h"
#include "parallel/world.h"
#include "registry/part_states.h"
#include "train/loop/hooks.h"
#include "train/loop/inbox.h"
#include "train/loop/incidents.h"
#include "train/loop/probe.h"
#include "train/loop/prompt.h"
#include "train/loop/saver.h"
#include "train/loop/steering.h"
#include "train/profile/profile.h"
#include "train/step/stepper.h"
#include "train/step/watch.h"
#include "train/step/weight_histograms.h"

namespace kf {

/// What a run is made of. Everything outlives the loop.
struct LoopMembers {
  Model& model;
  Optimizer& optimizer;
  Stepper& stepper;
  Loader& train_data;
  std::vector<EvalSet>& eval_sets;  // empty: no evaluation
  const Schedule& schedule;
  const Tokenizer* tokenizer = nullptr;  // null: hooks cannot generate text, evaluations have no bits per byte
  Hooks& hooks;
  Sinks& sinks;
  CheckpointManager& checkpoints;
  CheckpointWriter& writer;  // into the same folder
  Throughput& throughput;
  Averaged* average = nullptr;  // the optimizer, where it keeps a running average; null: there is none
  Phases phases = {};
  PartStates& states;               // of parts other than hooks
  TokenChooser* sampler = nullptr;  // generate.strategy; null: the native one
  RunInfo run;                      // for the sinks
};

struct LoopOptions {
  std::int64_t max_steps = 0;
  double lr = 0;  // optimizer.lr
  std::int64_t log_interval = 10;
  std::int64_t eval_interval = 1000;
  bool eval_at_start = false;  // of a fresh run
  std::function<bool(std::int64_t step)> save_due;
  bool save_at_start = false;  // a checkpoint of the fresh weights, step_0
  bool save_at_end = true;     // checkpoint.on_completion
  SaverOptions saves = {};
  at::Device device = at::kCPU;
  std::string resumed_from;     // the checkpoint, for the hooks; empty for a new run
  bool own_checkpoint = false;  // resumed_from is the run's own, so it is the newest until one is saved
  double target_loss = 0;       // an evaluation at or below it ends the run; 0 for none
  bool eval_in_chunks = false;  // evaluate as fused_linear_cross_entropy trains, without all logits
  /// Takes what ctx:report gives of a sweep's trial; true ends the run. Empty outside of sweeps.
  std::function<bool(std::int64_t step, double value)> report;
  GenerateOptions generate;            // defaults of ctx:generate
  std::int64_t max_seq_len = 0;        // of the model, for what is generated; 0: not known
  PromptStyle prompts = {};            // of ctx:generate
  fs::path run_dir = {};               // for ctx:write_artifact
  config::MetricsConfig metrics = {};  // what is watched and timed
  fs::path heartbeat = {};             // the file of metrics.heartbeat_sec
  double began = 0;                    // when this part of the run began, in seconds since 1970; 0: now
  double seconds_before = 0;           // that earlier processes of the run trained
  /// Called before each save; throws where the run has lost its folder. May be empty.
  std::function<void()> before_save = {};
  Heartbeat::Listener pulse = {};    // is told what the run does, whenever it moves; may be empty
  Incidents* incidents = nullptr;    // keeps steps whose numbers went wrong; null: nobody does
  Probe* probe = nullptr;            // of one update; null: there is none
  Profile* profile = nullptr;        // of some steps; null: there is none
  Prompt* prompt = nullptr;          // where it is answered what is said to the run; null: nothing is heard
  bool writes_checkpoints = true;    // false: a run that only looks saves nothing
  std::int64_t export_interval = 0;  // checkpoint.hf_export_interval
  /// Writes a folder for other programs out of a checkpoint; of the leader. Empty: nothing can be exported.
  std::function<void(const fs::path& checkpoint, const fs::path& folder)> export_checkpoint = {};
  std::vector<std::int64_t> ends = {};  // ids that end its answers
  std::int64_t vocab_size = 0;          // of the model
  std::uint64_t seed = 0;               // train.seed, of what evaluation draws
  std::int64_t mtp_head = 0;            // eval.mtp_head
  std::int64_t run_ahead = 0;           // train.run_ahead
  /// Called behind each step's boundary with what the run keeps then: for workers that came back. Empty: there are none.
  std::function<void(const std::function<config::Table()>& kept)> hand_on = {};
  World world = {};  // ranks that train together; the leader alone has sinks and writes
};

class TrainLoop {
 public:
  TrainLoop(LoopMembers parts, LoopOptions options, CheckpointState state);

  /// Runs to the end, or until a message in `inbox` of any rank, a hook or eval.target_loss stops it; saves in each of these cases. Throws
  /// Code::other when the stepper says that the run must not go on (StepResult::abort), and whatever a hook throws.
  RunResult run(Inbox& inbox);
  /// Completed updates so far.
  std::int64_t step() const { return state_.run.step; }

 private:
  void steps();
  void show_counters();
  void fire(Event event);
  void begin_parts();
  void start_fresh();
  void one_step();
  double rate(std::int64_t step) const;
  void count_tokens(const StepResult& result);
  bool may_run_ahead(std::int64_t step);
  void run_ahead(std::int64_t step);
  void settle_one();
  void settle_all();
  bool save_due(std::int64_t step);
  Stepper::Callbacks callbacks(std::int64_t step);
  void after_step(const StepResult& result);
  void keep_incident(const StepResult& result);
  void boundary(bool due_save, bool first = false);
  void hand_on();
  void change_phase(bool ask);
  void log_row();
  StepRow make_row(const Rate& rate);
  StepRow& row();
  void begin_traffic();
  void add_traffic(StepRow& row) const;
  double seconds() const { return options_.seconds_before + parts_.throughput.seconds(); }
  EvalResult evaluate_now(bool all);
  EvalResult evaluate_set(EvalSet& set);
  void run_eval(bool all);
  void check_best_metric(const EvalResult& eval);
  std::vector<Completion> generate_now(const std::vector<std::string>& prompts, const GenerateOptions& options);
  void publish_eval();
  void roll_back(const std::string& reason);
  bool save(const std::string& name = {});
  void await_earlier_save();
  double end_save();
  void save_last();
  bool save_fits_in_time();
  bool export_due() const;
  void export_models(const std::vector<std::string>& asked);
  void agree_on_requests();
  void follow(const RunMessage& message);
  void hear();
  Outcome carry_out(const RunMessage& said);
  void answer();
  std::string unwritten_text() const;
  bool told_to_stop();
  std::optional<fs::path> newest_checkpoint() const;
  config::Table values() const;
  void fill_context();
  bool complete() const { return state_.run.step >= options_.max_steps || data_over(); }
  bool finished() const { return complete() || stopped_by_hook_; }
  bool data_over() const;
  bool logs(std::int64_t step) const {
    return step == 1 || step % options_.log_interval == 0 || step == options_.max_steps || watch_.due(step);
  }
  void add_data_metrics(StepRow& row);
  void keep_time(const StepResult& result, double seconds);
  const StepResult& last_step(const char* method) const;
  RunResult result(double seconds) const;

  LoopMembers parts_;
  LoopOptions options_;
  Steering steering_;
  CheckpointState state_;
  HookContext context_;
  /// An update that was launched, and what held then.
  struct Ahead {
    Launched launched;
    RunState run;
    double lr = 0;
    double at = 0;  // in seconds of the loop
  };
  std::deque<Ahead> ahead_;  // the oldest first
  double last_at_ = 0;       // when the last one that was settled had been launched
  StepResult last_;          // what ctx:loss() reads,
  bool stepped_ = false;     // once there was a step
  RunResult outcome_;
  std::optional<StepRow> row_;  // the record of this step, made once: for hooks, metrics, sinks and the history
  WorkingFolder folder_;        // that the run began in
  Values extra_;                // what hooks logged in this step
  Controls controls_;
  std::string stop_reason_;
  bool stopped_by_hook_ = false;
  bool best_checked_ = false;
  Inbox* inbox_ = nullptr;                               // while the run is on
  bool told_to_stop_ = false;                            // by a message,
  bool told_unwritten_ = false;                          // that says that rows cannot be written
  std::deque<RunMessage> said_;                          // chunks and the like that wait for the end of a step,
  std::vector<std::pair<RunMessage, Outcome>> answers_;  // and what became of those that did not
  std::int64_t asked_step_ = -1;                         // the last one that the strategy was asked about,
  bool asked_due_ = false;                               // and what it said
  double waited_ = 0;                                    // for data, since the last row
  double stepped_for_ = 0;
  Traffic traffic_;  // up to the last row
  std::int64_t traffic_step_ = 0;
  Watch watch_;
  WeightHistograms histograms_;
  WallTime wall_;
  StepTimes step_times_;
  Heartbeat heartbeat_;
  bool save_over_ = false;  // the save that was under way has ended, on all ranks, while steps ran ahead
  Saver saver_;             // last: the thread that writes ends before the rest
};

}  // namespace kf
