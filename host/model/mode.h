#pragma once
// Evaluation mode for a while.

#include "model/module.h"

namespace kf {

/// Puts a module into evaluation mode; the destructor restores what was, exceptions included.
class EvaluationMode {
 public:
  explicit EvaluationMode(Module& module) : module_(module), training_(module.training()) { module_.train(false); }
  ~EvaluationMode() { module_.train(training_); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  Module& module_;
  bool training_;
};

}  // namespace kf
