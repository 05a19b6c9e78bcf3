#include "run/run_data.h"

#include "run/job_tokenizer.h"
#include "run/run_checks.h"

namespace kf {

RunData open_data(RunContext& run) {
  const config::Config& config = run.config;
  const LoaderOptions options{0, 1, &run.registries, run.device().is_cuda() && config.data.pin_memory};
  RunData data;
  data.train = make_train_loader(config, options);
  end_with_data(config, *data.train, run.plan);
  data.eval_sets = make_eval_sets(config, {0, 1, &run.registries});
  data.tokenizer = tokenizer_of(config, run.registries);
  data.tokenizer_files = watch_tokenizer(config.data.tokenizer_path);
  data.record = data_record_of(*data.train, data.eval_sets);
  return data;
}

}  // namespace kf
