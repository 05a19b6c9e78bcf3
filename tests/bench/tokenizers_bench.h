#pragma once
// MB/s of tokenizers beside those of other programs.

namespace kf::bench {

class Goals;

/// Runs tests/bench/tokenizers, with the programs that scripts/tokenizers.sh has put into .deps.
void bench_tokenizers(Goals& goals);

}  // namespace kf::bench
