#pragma once
// Ctrl-C in Lua code that does not return: the clean stop waits for the step, and the step would wait for ever.

#include "bindings/vm/runtime.h"

namespace kf::lua {

/// While one exists (of a run's script, and of one beside it), a signal that asks for a clean stop also watches Lua: a callback that goes
/// on for kGraceSeconds after it is ended with an error at its line. Loops that the JIT compiler has turned into machine code do not
/// notice; the second signal ends the process.
class Interrupt {
 public:
  explicit Interrupt(Runtime& runtime);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  static constexpr double kGraceSeconds = 2;

 private:
  Runtime& runtime_;
};

}  // namespace kf::lua
