#pragma once
// Batches as a pure function of their number: any step can be reached at once, and a checkpoint needs no data state but the step.

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/sequence/batch.h"
#include "data/sequence/dataset.h"
#include "data/source/loader_options.h"

namespace kf {

namespace config {
struct Config;
}

/// What a training loader may be told while the run goes on: what changes from some micro-batch on. Everything left out stays.
struct DataChange {
  std::optional<std::map<std::string, double>> weights;  // of the mixture, by source name; sources left out have those of the job
  std::optional<std::int64_t> batch_size;
  std::optional<std::int64_t> seq_len;

  bool operator==(const DataChange&) const = default;
};

/// The training or evaluation data of one rank.
class Loader {
 public:
  static constexpr std::int64_t kEndless = std::numeric_limits<std::int64_t>::max();

  virtual ~Loader() = default;
  /// Micro-batch number `index` since the start of the run (config::BatchPlan::first_micro(step) + micro).
  virtual Batch batch(std::int64_t index) = 0;
  /// Micro-batches before an epoch ends; of an evaluation loader, all there are (the last may be shorter).
  virtual std::int64_t batches_per_epoch() const = 0;
  /// How often the data have been read through before micro-batch `index`.
  virtual double epochs(std::int64_t index) const;
  /// Micro-batches before the data end (data.epochs, data.mix_stop), as far as the changes so far say; kEndless when they never do.
  virtual std::int64_t end() const { return kEndless; }
  /// Names of the sources of a mixture, as Batch::sources counts them; else none.
  virtual std::vector<std::string> sources() const { return {}; }
  /// How often each of them has been read through before micro-batch `index`.
  virtual std::vector<double> passes(std::int64_t /*index*/) { return {}; }
  virtual std::string describe() const = 0;
  virtual std::string fingerprint() const = 0;

  /// From micro-batch `index` on. Batches stay a function of their number and of the changes, in order. A change of the mixture begins the
  /// new order at its start, within the same epoch; one of batch_size goes on in the order; one of seq_len begins the next epoch of the
  /// order of the longer or shorter windows. Throws as `check` does, and for an index before an earlier change.
  virtual void change(std::int64_t index, const DataChange& change);
  /// Throws Code::data naming what cannot be: unknown sources, weights without a mixture, data too short for the windows.
  virtual void check(const DataChange& change) const;
};

/// By `[data]`: mixture (`data.datasets`), files (`dataset_path`), else synthetic random tokens. Throws Code::data.
std::unique_ptr<Loader> make_train_loader(const config::Config& config, const LoaderOptions& options);
/// 0.125 as "12.5 %".
std::string percent(double share);

}  // namespace kf
