#pragma once
// The data of a run, opened.

#include <memory>
#include <string>
#include <vector>

#include "core/source_watch.h"
#include "data/loader/eval_sets.h"
#include "data/loader/loader.h"
#include "data/tokenizer/tokenizer.h"
#include "run/run_context.h"

namespace kf {

struct RunData {
  std::unique_ptr<Loader> train;
  std::vector<EvalSet> eval_sets;            // empty: no evaluation
  std::unique_ptr<Tokenizer> tokenizer;      // null: nothing turns the ids into text
  std::vector<SourceWatch> tokenizer_files;  // watched for as long as the run goes
  std::string record;                        // what a checkpoint keeps of the data
};

/// Nothing is written but the token cache. `run.plan` gets the length of data that end. Throws Code::data.
RunData open_data(RunContext& run);

}  // namespace kf
