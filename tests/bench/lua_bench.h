#pragma once
// What crossing into Lua costs.

namespace kf::bench {

class Goals;

/// Operators from Lua against the same in C++, a hook, a schedule, a training step with its blocks in Lua against the native one.
void bench_lua(Goals& goals);

}  // namespace kf::bench
