#pragma once
// The state of an optimizer out of a checkpoint: all of it, or what two optimizers have in common.

#include <functional>
#include <set>
#include <string>

#include "checkpoint/files/load_rules.h"
#include "core/fs.h"
#include "model/model.h"
#include "optim/optimizer.h"

namespace kf {

/// What of a checkpoint, besides the weights, is left where it is (checkpoint.exclude_from_loading), or belongs to another optimizer.
struct StateRules {
  bool optimizer = true;         // its state at all
  bool moments = true;           // its tensors; running averages of the weights are none of them
  bool rng = true;               // of the CPU
  bool other_optimizer = false;  // optimizer.name is another than the checkpoint's: what both have is kept

  bool all() const { return optimizer && moments && !other_optimizer; }
};

/// What the optimizer's tensors and numbers of a checkpoint, SLOT.WEIGHT, are called here.
class MomentNames {
 public:
  MomentNames(Model& model, const LoadRules& rules);

  /// "" for one of a weight that the rules exclude. What belongs to no weight keeps its name.
  std::string of(const std::string& name) const;

 private:
  std::set<std::string> weights_, excluded_;
  NameMap names_;
};

/// All of `stored`: an optimizer that leaves part of it behind, or has more, is a Code::checkpoint error. `elsewhere`: tensors of other
/// ranks.
void take_all(Optimizer& optimizer, const OptimizerState& stored, const fs::path& path,
              const std::function<bool(const std::string&)>& elsewhere);

/// What has the same name and shape in both: the slots of a weight together or not at all (a second moment without its count of steps would
/// move weights far), numbers one by one; everything else begins anew. The log says what is kept, what is new and what stays behind. Unless
/// `rules` or `optimizer` say that part of it may, nothing stays behind: Code::checkpoint.
void take_common(Optimizer& optimizer, OptimizerState stored, const StateRules& state, bool strict, const fs::path& path);

}  // namespace kf
