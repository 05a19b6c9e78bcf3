#pragma once
// A mixture of one kernel an observation and one for the prior, over several parameters at once (Bergstra et al. 2011; Falkner et al. 2018
// for the joint form; bandwidths, weights and prior as in Optuna's _ParzenEstimator, which the papers leave open).

#include <vector>

#include "sweep/distribution.h"
#include "sweep/random.h"

namespace kf::sweep {

class ParzenEstimator {
 public:
  /// `observations[i][j]` is the stored value of parameter j in observation i, oldest first.
  ParzenEstimator(const std::vector<Distribution>& space, const std::vector<std::vector<double>>& observations);

  /// One stored value a parameter.
  std::vector<double> sample(Random& random) const;
  double log_density(const std::vector<double>& point) const;

 private:
  /// The kernels of one parameter, in the logarithm where that is its scale. Of a choice: a row of probabilities a kernel.
  struct Axis {
    Distribution distribution;
    double low = 0;  // the bounds, half a step wider where values are discrete
    double high = 0;
    std::vector<double> means;
    std::vector<double> sigmas;
    std::vector<std::vector<double>> weights;
  };

  static Axis numeric_axis(const Distribution& distribution, std::vector<double> means);
  static Axis choice_axis(const Distribution& distribution, const std::vector<double>& observed);
  static double sample_axis(const Axis& axis, std::size_t kernel, Random& random);
  static double log_density(const Axis& axis, std::size_t kernel, double stored);

  std::vector<double> weights_;  // of the kernels, summing to 1; the prior is the last
  std::vector<Axis> axes_;
};

}  // namespace kf::sweep
