#pragma once
// What the parts of a run keep in its checkpoints: one tree of values, by who keeps it.
//
// "hooks/NAME", "parts/KEY" (PartStates), "train" (the stepper), "course" (Steering), "eval" (the last evaluation), "wall" (WallTime),
// "stop" (why a hook ended the run),
// "sinks" (what sinks keep), "prompt" (how much of steering.jsonl was there). A new keeper takes a key of its own and changes nothing else.

#include <map>
#include <optional>
#include <string>

#include "config/tree/node.h"
#include "metrics/eval_result.h"

namespace kf {

inline constexpr const char *kHooks = "hooks", *kParts = "parts";  // groups
inline constexpr const char *kTrain = "train", *kCourse = "course", *kEval = "eval", *kWall = "wall", *kStop = "stop", *kSinks = "sinks",
                            *kPrompt = "prompt";

/// What is kept under `key`; null where there is nothing.
const config::Node& value_at(const config::Table& values, const std::string& key);
/// Everything under "GROUP/", by what follows.
std::map<std::string, config::Node> values_under(const config::Table& values, const std::string& group);
/// Adds these as "GROUP/NAME", nulls too.
void put_under(config::Table& values, const std::string& group, const std::map<std::string, config::Node>& more);

/// Adds the last evaluation, and reads it: nothing where there is none. Throws Code::checkpoint for what is no evaluation.
void put_eval(config::Table& values, const EvalResult& eval);
std::optional<EvalResult> eval_in(const config::Table& values);

}  // namespace kf
