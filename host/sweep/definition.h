#pragma once
// A sweep as a script describes it.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "config/load/load.h"
#include "config/tree/node.h"
#include "sweep/draw.h"
#include "sweep/pruner.h"
#include "sweep/trial.h"

namespace kf::sweep {

enum class Method { grid, random, list, tpe, asha, function };
/// "grid", ...
std::string method_name(Method method);

struct Definition {
  config::Origin place;      // of the call of kf.sweep
  config::Node base;         // a recipe: the job that all trials start from
  config::Table base_tree;   // the same with every default, as functions of the script see it; filled once the base is loaded
  std::vector<Entry> space;  // in order of their names
  Method method = Method::random;
  std::vector<config::Table> list;     // method list: dotted key -> value
  std::optional<std::int64_t> trials;  // nothing: as many as the method has
  std::uint64_t seed = 0;
  std::string objective = "eval.loss";  // dotted, of the result; "function" where the script computes it
  bool maximise = false;
  std::int64_t parallel = 1;
  std::int64_t ranks = 1;            // processes of a trial
  bool isolate = true;               // each trial is a process of its own; else they run one after another in the worker's
  config::Origin isolate_place;      // where the script says so
  std::optional<AshaOptions> prune;  // min_resource 0: a hundredth of the steps

  /// May change the values; false rejects them. Empty: all are fine.
  std::function<bool(config::Table& values)> adjust;
  /// Method function: the values of trial `number`, or nothing when it has no more. Dotted keys.
  std::function<std::optional<config::Table>(std::int64_t number, const std::vector<Trial>& trials)> suggest;
};

/// What must stay the same when a sweep goes on: space, method, seed, objective, direction.
config::Table identity(const Definition& definition);
/// "" or what differs between two identities, for people.
std::string difference(const config::Table& before, const config::Table& now);

/// Every problem of the space that the schema knows of: unknown keys, values that a key cannot take. Entries of `base` with
/// --section.key overrides that would win over the space are problems, too.
std::vector<config::Problem> check_space(const Definition& definition, const config::Catalog& catalog,
                                         const std::vector<std::string>& overrides);

/// Puts `value` at a dotted key, making the tables in between.
void set_at(config::Table& tree, std::string_view key, config::Node value);

}  // namespace kf::sweep
