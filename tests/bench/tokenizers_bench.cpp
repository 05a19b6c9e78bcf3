#include "bench/tokenizers_bench.h"

#include <cstdio>
#include <string>

#include "bench/goals.h"
#include "core/error.h"
#include "core/fs.h"
#include "core/text.h"
#include "support/process.h"

namespace kf::bench {

void bench_tokenizers(Goals& goals) {
  test::Options options;
  options.timeout = std::chrono::hours(1);
  const std::string build = fs::path(KF_HOST).parent_path().string();
  const test::Finished done = test::run({"python3", KF_SOURCE_DIR "/tests/bench/tokenizers", "--build", build}, options);
  std::printf("%s", done.out.c_str());
  KF_CHECK(done.status == 0, Code::other, "tests/bench/tokenizers: {}", done.err);
  // "least: 12.3 MB/s, 2.10 x tiktoken": of all texts and vocabularies
  for (const std::string& line : split(done.out, '\n')) {
    double speed = 0, times = 0;
    char other[32] = "";
    if (std::sscanf(line.c_str(), "least: %lf MB/s of a core", &speed) == 1) {
      goals.seen("tokenizer, slowest text and vocabulary, a core", speed, "MB/s");
    } else if (std::sscanf(line.c_str(), "least: %lf x %31s", &times, other) == 2) {
      goals.at_least(format("tokenizer / {}, slowest", std::string(other)), times, 1, "x");
    }
  }
}

}  // namespace kf::bench
