#include "run/run_data.h"

#include <exception>

#include "run/job_tokenizer.h"
#include "run/run_checks.h"
#include "train/step/cut_batch.h"

namespace kf {
namespace {

/// What the leader does while one exists is done when the others begin.
class LeaderFirst {
 public:
  explicit LeaderFirst(const World& world) : world_(world), errors_(std::uncaught_exceptions()) {
    if (!world_.leads()) {
      world_.all().barrier();
    }
  }
  ~LeaderFirst() noexcept(false) {
    if (world_.leads() && std::uncaught_exceptions() == errors_) {  // of an error the others hear when it ends the run
      world_.all().barrier();
    }
  }
  LeaderFirst(const LeaderFirst&) = delete;
  LeaderFirst& operator=(const LeaderFirst&) = delete;

 private:
  const World& world_;
  int errors_;
};

}  // namespace

RunData open_data(RunContext& run) {
  const config::Config& config = run.config;
  const LeaderFirst first(run.world);  // which fills the token cache that the others find
  const Share& share = run.share;
  const LoaderOptions options{share.rank, share.world, &run.registries, run.device().is_cuda() && config.data.pin_memory};
  RunData data;
  data.train = make_train_loader(config, options);
  end_with_data(config, *data.train, run.plan);
  const Share whole = drawing_share(run.world);  // evaluations cut no sequence: each cp rank has others
  data.eval_sets = make_eval_sets(config, {whole.rank, whole.world, &run.registries});
  data.tokenizer = tokenizer_of(config, run.registries);
  data.tokenizer_files = watch_tokenizer(config.data.tokenizer_path);
  data.record = data_record_of(*data.train, data.eval_sets);
  return data;
}

}  // namespace kf
