#pragma once
// What a model is evaluated on: one set by the flat keys of [eval], or those of [[eval.datasets]].

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/loader/loader.h"

namespace kf {

struct EvalSet {
  std::string name;  // "" for the one set of the flat keys
  std::unique_ptr<Loader> data;
  std::int64_t interval = 0;  // steps between its evaluations
  bool text = false;          // it is read through the tokenizer, or as bytes
};

/// By `[eval]`, in order; none when evaluation is off. Each loader gives the windows of its set in order, each once, at most
/// `steps` batches of eval.batch_size in all: ranks share them, so a set has the same tokens on any number of ranks. The last batches of a
/// rank may be short, or empty. Packing does not apply. Throws Code::data naming the set.
std::vector<EvalSet> make_eval_sets(const config::Config& config, const LoaderOptions& options);

}  // namespace kf
