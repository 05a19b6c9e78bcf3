#pragma once
// Callbacks at fixed points of a run, native or from Lua.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/tree/node.h"
#include "core/fs.h"
#include "generate/completion.h"
#include "metrics/eval_result.h"
#include "metrics/row.h"
#include "metrics/run_state.h"
#include "model/model.h"
#include "train/loop/controls.h"

namespace kf {

class Loader;

/// `on_<name>` in a hook table.
enum class Event {
  train_begin,
  step_begin,
  micro_end,
  backward_end,
  step_end,
  log,
  eval_end,
  checkpoint_save,
  checkpoint_load,
  phase_change,
  train_end,
  error,
};
inline constexpr std::string_view kEventNames[] = {"train_begin",     "step_begin",   "micro_end", "backward_end",
                                                   "step_end",        "log",          "eval_end",  "checkpoint_save",
                                                   "checkpoint_load", "phase_change", "train_end", "error"};

/// What a hook sees and may ask for. Fields are free; functions may wait for the device.
struct HookContext {
  RunState state;
  double lr = 0;
  std::int64_t n_params = 0;
  std::int64_t max_steps = 0;
  double epoch = 0;                // of the training data, with its fraction
  double seconds = 0;              // since this process started training
  std::string phase;               // "" without phases
  std::optional<EvalResult> eval;  // the last one
  std::string path;                // checkpoint_save, checkpoint_load
  bool leads = true;               // whether this rank writes the run's files
  bool warns_of_files = false;     // a file of the run that cannot be written is a warning (checkpoint.on_error)
  fs::path run_dir;                // the run's folder, for what hooks write there; empty: there is none
  std::string message;             // error, train_end: why
  Model* model = nullptr;
  const Loader* data = nullptr;  // to check requests about the mixture against
  bool gradients_lent = false;   // in backward_end: a hook was given the gradients and may have written into them
  Controls* controls = nullptr;  // requests go here

  std::function<std::optional<double>()> loss;       // of this step; nothing where it has no label that counts
  std::function<std::optional<double>()> grad_norm;  // likewise
  std::function<StepRow()> metrics;                  // of this step: the row of metrics.jsonl, with what hooks have logged so far
  std::function<void(const Values&)> log;            // into this step's row of metrics.jsonl
  std::function<void(const std::string& name, const std::string& text)> log_text;  // to the sinks, for people to read
  std::function<EvalResult()> evaluate;                                            // now; neither logged nor an event
  std::function<void(double value)> report;                                        // to the sweep that this run is a trial of
  /// Answers to prompts, in their order.
  std::function<std::vector<Completion>(const std::vector<std::string>&, const GenerateOptions&)> generate;
  GenerateOptions generate_defaults;
};

class Hook {
 public:
  virtual ~Hook() = default;
  virtual std::string name() const = 0;  // the key of its state in checkpoints
  /// Whether `call` should be made at all; asked before any crossing into Lua. `every` concerns step events only.
  virtual bool wants(Event event, std::int64_t step) const = 0;
  virtual void call(Event event, HookContext& context) = 0;
  /// Hooks of higher priority are called first; equal ones in order of registration.
  virtual std::int64_t priority() const { return 0; }
  virtual config::Node state() { return {}; }
  virtual void load(const config::Node& /*state*/) {}
};

}  // namespace kf
