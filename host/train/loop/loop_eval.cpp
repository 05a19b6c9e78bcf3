// What the loop does beside training: evaluation, generation.

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "core/running.h"
#include "core/text.h"
#include "core/trace.h"
#include "generate/generate.h"
#include "model/layer/vocabulary.h"
#include "model/own_draws.h"
#include "model/seed.h"
#include "model/weight_unit.h"
#include "train/eval/evaluate.h"
#include "train/loop/loop.h"

namespace kf {
namespace {

/// Whether a set's own interval has come.
bool is_due(const EvalSet& set, std::int64_t step, std::int64_t max_steps) { return step % set.interval == 0 || step == max_steps; }

}  // namespace

EvalResult TrainLoop::evaluate_now(bool all) {
  KF_CHECK(!parts_.eval_sets.empty(), Code::config,
           "there is nothing to evaluate on: set eval.enabled = true and eval.dataset_path, eval.datasets, or data.holdout");
  std::vector<EvalResult> sets;
  std::vector<bool> together;
  for (EvalSet& set : parts_.eval_sets) {
    if (all || is_due(set, state_.run.step, options_.max_steps)) {
      sets.push_back(evaluate_set(set));
      together.push_back(set.interval == options_.eval_interval);
    }
  }
  return sets.front().name.empty() ? sets.front() : join(std::move(sets), together);
}

EvalResult TrainLoop::evaluate_set(EvalSet& set) {
  EvalOptions options{options_.device, options_.eval_in_chunks, parts_.tokenizer, options_.seed, options_.mtp_head};
  options.data = &options_.world.data();
  options.together = options_.world.mesh().degree(Axis::ep) > 1;
  options.vocabulary = vocabulary_ranks(parts_.model, options_.world);
  options.pulse = [this] { heartbeat_.beat("evaluation", state_.run.step); };
  const Running running("an evaluation", set.name.c_str(), state_.run.step);
  const TraceRange range(TraceKind::phase, "evaluation");
  EvalResult eval = evaluate(parts_.model, parts_.optimizer, *set.data, options, state_.run.step);
  if (parts_.average != nullptr) {
    const WithRunningAverage average(*parts_.average);  // without the optimizer's own averages, which would take its place
    eval.ema = evaluate_sums(parts_.model, *set.data, options).result(state_.run.step, set.data->describe()).loss;
  }
  eval.name = set.name;
  return eval;
}

std::vector<Completion> TrainLoop::generate_now(const std::vector<std::string>& prompts, const GenerateOptions& options) {
  KF_CHECK(parts_.tokenizer != nullptr, Code::config, "text cannot be generated: data.tokenizer_path names no tokenizer for these tokens");
  const TraceRange range(TraceKind::phase, "generation");
  GenerateRequest request;
  for (const std::string& prompt : prompts) {
    request.prompts.push_back(prompt_ids(*parts_.tokenizer, prompt, options_.prompts));
  }
  request.options = options;
  request.options.strategy = parts_.sampler;
  request.ends = options_.ends;
  request.vocab_size = options_.vocab_size;
  request.tokenizer = parts_.tokenizer;
  request.device = options_.device;
  request.max_positions = options_.max_seq_len;
  const WithAverages averages(parts_.optimizer);  // what evaluation and checkpoints show
  const WholeWeights whole(parts_.model);
  return generate(parts_.model, request);
}

/// checkpoint.best_metric must be a number of the evaluations, or nothing is ever kept by it. Said once.
void TrainLoop::check_best_metric(const EvalResult& eval) {
  const CheckpointOptions& options = parts_.checkpoints.options();
  const std::string set = options.best_metric.substr(0, std::min(options.best_metric.rfind('.'), options.best_metric.size()));
  const bool later = std::any_of(parts_.eval_sets.begin(), parts_.eval_sets.end(), [&](const EvalSet& one) {
    return one.name == set && find_number(eval, set + ".tokens") == std::nullopt;  // its own interval has not come
  });
  if (best_checked_ || later || options.keep_best <= 0 || !eval.has_loss() || !options_.world.leads()) {
    return;
  }
  best_checked_ = true;
  if (!find_number(eval, options.best_metric)) {
    log::warn("checkpoint.best_metric: this evaluation has no eval.{}, so checkpoint.best_k keeps nothing; it has eval.{}",
              options.best_metric, join(number_names(eval), ", eval."));
  }
}

/// The sets whose interval has come, or all.
void TrainLoop::run_eval(bool all) {
  parts_.throughput.pause();
  const double begin = parts_.throughput.seconds();
  heartbeat_.now("evaluation", state_.run.step);
  context_.eval = evaluate_now(all);
  check_best_metric(*context_.eval);
  wall_.add(WallTime::Cause::eval, parts_.throughput.seconds() - begin);
  {
    const OwnDraws draws(options_.device, mixed_seed(options_.seed, static_cast<std::uint64_t>(state_.run.step)), "on_eval_end");
    fire(Event::eval_end);
  }
  if (options_.target_loss > 0 && context_.eval->loss <= options_.target_loss) {
    controls_.stop = format("the evaluation loss {} reached eval.target_loss ({})", context_.eval->loss, options_.target_loss);
  }
  parts_.throughput.resume();
}

void TrainLoop::publish_eval() {
  parts_.sinks.eval(*context_.eval);
  outcome_.eval = context_.eval;
}

}  // namespace kf
