#pragma once
// What hooks ask of a run. Requests are collected here while a step is on and take effect together at the next step boundary: the one place
// where several ranks can agree on them.

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kf {

struct Controls {
  /// Weights that train or do not, from now on.
  struct Freezing {
    std::string pattern;
    bool frozen = true;
    std::string asked_at = {};  // "script.lua:12: ", maybe ""
    bool operator==(const Freezing&) const = default;
  };

  std::optional<std::string> stop;                       // the reason, maybe ""
  std::vector<std::string> saves;                        // names; "" is a numbered checkpoint
  std::vector<std::string> exports;                      // folders, below that of the run; "" is exports/step_N
  bool eval = false;                                     // an evaluation as those of eval.interval
  std::optional<double> lr_scale;                        // multiplies the learning rate from the next step on
  std::optional<std::map<std::string, double>> mixture;  // weights by source name, from the next step on
  std::map<std::string, double> loss_weights;            // "z_loss": train.z_loss_weight; "aux_loss": a factor of the model's own terms
  std::vector<Freezing> freezing;                        // in order
  std::optional<std::string> rollback;                   // why: back to the newest checkpoint, the data since then are left out
  std::string skip_update;                               // why; at once: asked for in backward_end, it concerns the step that is on

  bool operator==(const Controls&) const = default;
};

}  // namespace kf
