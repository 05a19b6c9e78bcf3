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

#include "config/node.h"
#include "model/model.h"
#include "train/run_state.h"

namespace kf {

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

/// One evaluation.
struct EvalResult {
  std::int64_t step = 0;
  double loss = 0;        // cross entropy over all counted tokens
  double perplexity = 0;  // exp(loss)
  std::int64_t tokens = 0;
  std::optional<double> ema = {};  // the loss of the averaged weights (averaging.type)
};

struct GenerateOptions {
  std::int64_t max_new_tokens = 64;
  double temperature = 1.0;  // 0 takes the most likely token
  std::int64_t top_k = 0;    // 0 = off
  double top_p = 1.0;
  std::uint64_t seed = 0;
};

/// What a hook sees and may ask for. Fields are free; functions may wait for the device.
struct HookContext {
  RunState state;
  double lr = 0;
  std::int64_t n_params = 0;
  std::int64_t max_steps = 0;
  std::optional<EvalResult> eval;  // the last one
  std::string path;                // checkpoint_save, checkpoint_load
  std::string message;             // error, train_end: why
  Model* model = nullptr;

  std::function<double()> loss;                                                 // of this step
  std::function<double()> grad_norm;                                            // of this step
  std::function<void(const std::vector<std::pair<std::string, double>>&)> log;  // into this step's row of metrics.jsonl
  std::function<void(const std::string&)> stop;                                 // at the next step boundary
  std::function<void(const std::string&)> request_save;  // at the next step boundary; a name keeps it beside the numbered ones
  std::function<std::string(const std::string&, const GenerateOptions&)> generate;
};

class Hook {
 public:
  virtual ~Hook() = default;
  virtual std::string name() const = 0;  // the key of its state in checkpoints
  /// Whether `call` should be made at all; asked before any crossing into Lua. `every` concerns step events only.
  virtual bool wants(Event event, std::int64_t step) const = 0;
  virtual void call(Event event, HookContext& context) = 0;
  virtual config::Node state() { return {}; }
  virtual void load(const config::Node& /*state*/) {}
};

}  // namespace kf
