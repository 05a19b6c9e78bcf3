#pragma once
// What the program does for a script.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "config/tree/node.h"
#include "core/fs.h"
#include "generate/completion.h"
#include "kernels/product/product.h"
#include "metrics/eval_result.h"
#include "metrics/run_result.h"

namespace kf {

class Model;

/// The model of a checkpoint, and what can be done with it.
struct ScriptModel {
  std::shared_ptr<Model> model;
  GenerateOptions generate_defaults;
  std::function<std::vector<Completion>(const std::vector<std::string>& prompts, const GenerateOptions&)> generate;
  /// On what the keys of [eval] say (--eval.key=value); none: on the job's own sets.
  std::function<EvalResult(const std::vector<std::string>& overrides)> evaluate;
  Products products = {};  // those of its run, for a forward of `model`; the functions above take them by themselves
};

/// What a script may ask of the program.
struct ScriptHost {
  /// Trains the job that a table given to kf.run describes (Request::recipe). Empty: kf.run is an error.
  std::function<RunResult(config::Node)> run;
  /// The model of a checkpoint, for kf.load_model. Empty: kf.load_model is an error.
  std::function<ScriptModel(const fs::path&, const std::string& weights)> load_model;
  std::int64_t rank = 0;
  std::int64_t world = 1;
};

}  // namespace kf
