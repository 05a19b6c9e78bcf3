#pragma once
// Forward hooks: functions that see, and may replace, what chosen modules give. Layers hand their result through `observed`; one comparison
// where nobody looks. All of it on the thread that trains.

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <utility>

#include "model/module.h"

namespace kf {

/// Sees a forward of one module. An undefined result leaves the output as it is.
using Observer = std::function<at::Tensor(const at::Tensor& input, const at::Tensor& output)>;

/// `observer` is called after every forward of `module` (recomputed ones, too) while this exists, or until the module is gone.
class Observation {
 public:
  Observation(const std::shared_ptr<Module>& module, Observer observer);
  ~Observation();
  Observation(const Observation&) = delete;
  Observation& operator=(const Observation&) = delete;

  /// How many forwards it saw.
  std::int64_t calls() const { return calls_; }

 private:
  friend at::Tensor observed_slowly(const Module& module, const at::Tensor& input, at::Tensor output);

  const Module* key_;
  std::weak_ptr<Module> module_;  // the address alone could be that of a later module
  Observer observer_;
  std::int64_t calls_ = 0;
};

inline thread_local std::size_t observation_count = 0;
at::Tensor observed_slowly(const Module& module, const at::Tensor& input, at::Tensor output);

/// The output of `module`, after its observers.
inline at::Tensor observed(const Module& module, const at::Tensor& input, at::Tensor output) {
  return observation_count == 0 ? output : observed_slowly(module, input, std::move(output));
}

/// How many forwards of any module went through `observed` while somebody looked.
std::int64_t observed_forwards();

}  // namespace kf
