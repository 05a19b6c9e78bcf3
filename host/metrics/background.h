#pragma once
// A sink on a thread of its own, for what talks to a network or writes much: a slow answer there must not stall a step.

#include <cstddef>
#include <memory>
#include <string>

#include "metrics/sink.h"

namespace kf {

/// `sink` behind a queue of `queue` events, from 1 on. All of them reach it, in order, but for a step_over behind which nothing is new:
/// while the queue is full the caller waits, which is a warning the first time. The thread begins when a step is over. begin, before_save,
/// state, load and end wait until the sink has done all that came before, and them. `fault` is what the sink said of itself behind the last
/// event that it has done.
///
/// What the sink throws surfaces once, at the next call; further errors until then are logged. Where no call follows (the run ended with an
/// error), what waits is still delivered, and the error is logged. `name` is the sink's in these messages.
///
/// For native sinks alone: the state of Lua has one thread.
std::unique_ptr<Sink> in_background(std::unique_ptr<Sink> sink, std::size_t queue, std::string name);

}  // namespace kf
