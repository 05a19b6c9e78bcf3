// Which files of a repository are a split.

#include <catch2/catch.hpp>

#include "core/error.h"
#include "data/hub/card.h"
#include "data/hub/repository.h"

namespace {

using namespace kf;
using Catch::Matchers::Contains;
using Paths = std::vector<std::string>;

Paths files(const Paths& paths, const std::string& split, const std::string& card = "", const std::string& config = "") {
  return hub::files_of_split({"org/set", paths, card, config, split});
}

const char* const kCard = R"(---
license: mit
configs:
- config_name: en
  default: true
  data_files:
  - split: train
    path: "en/train-*"
  - split: test
    path: [en/test-0.jsonl, "en/test-1.jsonl"]
- config_name: de
  data_dir: de
  data_files: "*.jsonl"
- config_name: all
---
# A set
)";
const Paths kFiles{"README.md",       "en/train-0.jsonl", "en/train-1.jsonl", "en/test-0.jsonl",
                   "en/test-1.jsonl", "de/x.jsonl",       "de/sub/y.jsonl"};

}  // namespace

TEST_CASE("hub: patterns keep to their part of a path", "[hub]") {
  CHECK(hub::path_matches("data/train-*", "data/train-0.parquet"));
  CHECK(!hub::path_matches("data/*", "data/a/b"));
  CHECK(hub::path_matches("**/*.json", "a/b/c.json"));
  CHECK(hub::path_matches("**/*.json", "c.json"));
  CHECK(hub::path_matches("./a[0-3]?.t", "a2x.t"));
  CHECK(!hub::path_matches("a[!0-3].t", "a2.t"));
  CHECK(hub::path_matches("a/**", "a/b/c"));
}

TEST_CASE("hub: a card names the files of its configurations and splits", "[hub]") {
  CHECK(files(kFiles, "train", kCard) == Paths{"en/train-0.jsonl", "en/train-1.jsonl"});
  CHECK(files(kFiles, "test", kCard, "en") == Paths{"en/test-0.jsonl", "en/test-1.jsonl"});
  CHECK(files(kFiles, "train", kCard, "de") == Paths{"de/x.jsonl"});
  CHECK(files(kFiles, "test", kCard, "all") == Paths{"en/test-0.jsonl", "en/test-1.jsonl"});
  CHECK_THROWS_WITH(files(kFiles, "train", kCard, "fr"), Contains("no configuration \"fr\"; there are en, de, all"));
  CHECK_THROWS_WITH(files(kFiles, "dev", kCard), Contains("no split \"dev\"; there are test, train"));
  CHECK_THROWS_WITH(files({"README.md"}, "train", kCard), Contains("no data file matches en/train-*"));
  CHECK_THROWS_WITH(files(kFiles, "train", "---\nconfigs: [}\n---\n"), Contains("the head of README.md (line 2)"));
}

TEST_CASE("hub: without a card, names of files and folders say the split", "[hub]") {
  const Paths sharded{"data/train-00000-of-00002.parquet", "data/train-00001-of-00002.parquet", "data/extra-00000-of-00001.parquet"};
  CHECK(files(sharded, "train").size() == 2);
  CHECK(files(sharded, "extra").size() == 1);
  const Paths folders{"train/a.txt", "my_dev/b.txt", "test/c.txt", "LICENSE"};
  CHECK(files(folders, "train") == Paths{"train/a.txt"});
  CHECK(files(folders, "validation") == Paths{"my_dev/b.txt"});
  const Paths names{"train.csv", "my-valid_1.csv", "test2.csv", "training.csv"};
  CHECK(files(names, "train") == Paths{"train.csv", "training.csv"});
  CHECK(files(names, "validation") == Paths{"my-valid_1.csv"});
  CHECK(files(names, "test") == Paths{"test2.csv"});
  CHECK(files({"contest.csv", "b.csv"}, "train") == Paths{"b.csv", "contest.csv"});
  // Several words in a name: it is several splits', each once.
  const Paths both{"train/my_test-train/a.csv", "b.csv"};
  CHECK(files(both, "train") == Paths{"train/my_test-train/a.csv"});
  CHECK(files(both, "test") == Paths{"train/my_test-train/a.csv"});
  CHECK_THROWS_WITH(files({"b.csv"}, "test"), Contains("no split \"test\"; there are train"));
}

TEST_CASE("hub: a configuration without a card is a folder", "[hub]") {
  const Paths converted{"en/train/0000.parquet", "en/test/0000.parquet", "de/train/0000.parquet"};
  CHECK(files(converted, "train", "", "en") == Paths{"en/train/0000.parquet"});
  CHECK_THROWS_WITH(files(converted, "train", "", "fr"), Contains("folder fr holds no files of data"));
}

TEST_CASE("hub: data are the files of the format that most have; scripts are not run", "[hub]") {
  CHECK(files({"a.parquet", "b.parquet", "notes.txt", ".hidden.parquet", "dataset_infos.json"}, "train") ==
        Paths{"a.parquet", "b.parquet"});
  CHECK_THROWS_WITH(files({"set.py", "README.md"}, "train"),
                    Contains("loading script, which is not run") && Contains("refs/convert/parquet"));
  CHECK_THROWS_WITH(files({"a.txt"}, "train[:10%]"), Contains("one split by its name"));
}
