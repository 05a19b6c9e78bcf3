#pragma once

namespace kf::bench {

/// What a logged step costs the training thread, sink by sink.
void bench_sinks();

}  // namespace kf::bench
