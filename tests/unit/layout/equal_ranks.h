#pragma once
// N ranks equal one: how every axis is proved. Ranks are threads (run_ranks); tests/e2e/ranks_test.cpp has processes.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "parallel/mesh/mesh.h"
#include "parallel/world.h"
#include "support/tiny.h"

namespace kf::test {

/// Sequences of a micro-batch over all readers, their length, and the steps of a run.
inline constexpr std::int64_t kRows = 8, kLength = 16, kSteps = 10;

/// Eight rows a micro-batch, every world-th of which is this reader's; a third of the labels does not count, and all of those of row 0.
class SharedRows final : public Loader {
 public:
  /// `share`: of World::share.
  SharedRows(Share share, bool packed) : share_(share), packed_(packed) {}
  Batch batch(std::int64_t index) override;
  std::int64_t batches_per_epoch() const override { return 1000; }
  std::string describe() const override { return "rows"; }
  std::string fingerprint() const override { return "rows"; }

 private:
  at::Tensor rows(const at::Tensor& all) const { return all.slice(0, share_.rank, kRows, share_.world).contiguous(); }

  Share share_;
  bool packed_;
};

/// A way to spread a job: degrees in the order of kAxes.
struct Layout {
  PerAxis degrees{1, 1, 1, 1, 1, 1};
  std::int64_t zero_stage = 1;
};

/// What is trained, and how near ranks come to one.
struct Trial {
  bool packed = false;
  double lr = 1e-3;
  double tolerance = 1e-6;  // of a weight
  at::ScalarType compute = at::kFloat;
  double loss_share = 1e-6, norm_share = 1e-5;  // of themselves
};

/// What kSteps updates come to: losses and norms of a rank, whole weights by name.
struct Outcome {
  std::vector<double> losses, norms;
  std::map<std::string, at::Tensor> weights;
};

/// tiny_config with rows of kLength tokens, and an eps at which Adam is smooth.
config::Config small_config();

/// On one rank.
Outcome train_alone(const config::Config& config, const Trial& trial = {});
/// On all ranks of the layout, which must tell the same losses and norms; weights are put together from what the ranks hold, and those that
/// hold the same numbers must have the same bits.
Outcome train_on(const Layout& layout, config::Config config, const Trial& trial = {});

/// CHECKs that losses, norms and weights differ by no more than the trial says: sums in another order differ by a few
/// units of fp32 in the last place, and ten steps of a small rate carry that on.
void check_near(const Outcome& many, const Outcome& one, const Trial& trial = {});
/// The same of every layout and one rank.
void check_equal(const std::vector<Layout>& layouts, const config::Config& config, const Trial& trial = {});
/// CHECKs that a second run of the layout has the bits of the first one.
void check_repeats(const Layout& layout, const config::Config& config, const Trial& trial = {});

}  // namespace kf::test
