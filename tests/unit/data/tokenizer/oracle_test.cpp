// Fresh cases from Python's libraries, where they are installed (scripts/tokenizers.sh).

#include <catch2/catch.hpp>
#include <cstdlib>
#include <ctime>

#include "core/fs.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "unit/data/tokenizer/cases.h"

namespace kf::test {
namespace {

TEST_CASE("tokenizer: random text in every kind of tokenizer gives the ids of tokenizers, sentencepiece and tiktoken") {
  const fs::path source(KF_SOURCE_DIR);
  const fs::path libraries = source / ".deps/tokenizers-oracle";
  if (!fs::exists(libraries / "tokenizers")) {
    WARN(
        "Python's tokenizers, sentencepiece and tiktoken are not in .deps/tokenizers-oracle (scripts/tokenizers.sh): only stored cases "
        "were checked");
    return;
  }
  const TempDir folder;
  const char* given = std::getenv("KF_TOKENIZER_SEED");
  const std::string seed = given != nullptr ? given : "1";
  Options options;
  options.env = {{"PYTHONPATH", libraries.string()}};
  options.timeout = std::chrono::seconds(600);
  const Finished made =
      run({"python3", (source / "tests/unit/data/tokenizer/oracle.py").string(), (folder / "cases").string(), seed, "40"}, options);
  INFO(made.err);
  REQUIRE(made.status == 0);
  int folders = 0;
  for (const fs::path& cases : glob(folder / "cases", "*/cases.jsonl")) {
    const CaseCount count = check_cases(cases.parent_path());
    INFO(cases.parent_path().filename() << ", " << count.wrong << " of " << count.cases << "\n" << count.first);
    CHECK(count.wrong == 0);
    ++folders;
  }
  CHECK(folders >= 90);
}

}  // namespace
}  // namespace kf::test
