// Data sets by name, from the stand-in server, the cache and what `datasets` left.

#include <catch2/catch.hpp>

#include "core/error.h"
#include "core/text.h"
#include "data/hub/cache.h"
#include "unit/data/hub/server.h"
#include "unit/data/read/texts.h"

namespace {

using namespace kf;
using Catch::Matchers::Contains;
using Texts = std::vector<std::string>;

SourceRequest request_for(const std::string& name, bool streaming = false) {
  SourceRequest request;
  request.hf_name = name;
  request.hf_streaming = streaming;
  return request;
}

Texts read(const SourceFiles& source) {
  Skipped skipped;
  Texts texts;
  for (const SourceFile& file : source.files) {
    const std::unique_ptr<RecordReader> reader = open_records(file, {}, {}, skipped);
    for (Record record; reader->next(record);) {
      texts.emplace_back(record.text);
    }
  }
  return texts;
}

void fill(const test::HubServer& server) {
  const std::string filler(1000, 'x');
  server.add("README.md", "# A set\n");
  server.add(".gitattributes", "*.jsonl filter=lfs\n");
  server.add("data/train-00000-of-00002.jsonl", "{\"text\": \"a\", \"filler\": \"" + filler + "\"}\n");
  server.add("data/train-00001-of-00002.jsonl", "{\"text\": \"b\"}\n");
  server.add("data/test-00000-of-00001.jsonl", "{\"text\": \"t\"}\n");
}

}  // namespace

TEST_CASE("hub: a data set's split is fetched once, and read from the cache without the hub", "[hub]") {
  const test::HubServer server;
  fill(server);
  const test::TempDir home;
  const test::Environment environment({{"HF_HOME", home.path().string()}, {"HF_ENDPOINT", server.endpoint("ok")}});
  CHECK(read(resolve_source(request_for("org/set"))) == Texts{"a", "b"});
  CHECK(read(resolve_source(request_for("org/set"))) == Texts{"a", "b"});
  CHECK(server.requests("/resolve/").size() == 3);  // README.md and two files, once
  // Laid out as huggingface_hub does.
  const fs::path folder = home / "hub/datasets--org--set";
  const std::string commit = read_file(folder / "refs/main");
  CHECK(fs::is_symlink(folder / "snapshots" / commit / "data/train-00000-of-00002.jsonl"));
  CHECK(fs::read_symlink(folder / "snapshots" / commit / "data/train-00000-of-00002.jsonl").string().starts_with("../../../blobs/"));
  const test::Environment offline({{"HF_HUB_OFFLINE", "1"}});
  CHECK(read(resolve_source(request_for("org/set"))) == Texts{"a", "b"});
  fs::remove(folder / "snapshots" / commit / "data/train-00001-of-00002.jsonl");
  CHECK_THROWS_WITH(resolve_source(request_for("org/set")), Contains("1 of 2 shards are there"));
  CHECK_THROWS_WITH(resolve_source(request_for("org/other")), Contains("offline (HF_HUB_OFFLINE)"));
}

TEST_CASE("hub: a revision may stand in a data set's name", "[hub]") {
  const test::HubServer server;
  fill(server);
  const test::TempDir home;
  const test::Environment environment({{"HF_HOME", home.path().string()}, {"HF_ENDPOINT", server.endpoint("ok")}});
  CHECK(read(resolve_source(request_for("org/set@v1.0"))) == Texts{"a", "b"});
  CHECK(server.requests("/api/datasets/org/set/revision/v1.0").size() == 1);
  CHECK(server.requests("/revision/main").empty());
  CHECK(fs::exists(home / "hub/datasets--org--set/refs/v1.0"));
  CHECK(!fs::exists(home / "hub/datasets--org--set/refs/main"));
  CHECK_THROWS_WITH(resolve_source(request_for("org/set@")), Contains("'org/set@' has '' behind @") && Contains("ORG/NAME@REVISION"));
  CHECK_THROWS_WITH(resolve_source(request_for("org/set@a b")), Contains("'a b' behind @"));
  const test::Environment offline({{"HF_HUB_OFFLINE", "1"}});
  CHECK(read(resolve_source(request_for("org/set@v1.0"))) == Texts{"a", "b"});
  CHECK_THROWS_WITH(resolve_source(request_for("org/set")), Contains("offline (HF_HUB_OFFLINE)"));  // main was never asked for
}

TEST_CASE("hub: streaming keeps nothing", "[hub]") {
  const test::HubServer server;
  fill(server);
  const test::TempDir home;
  const test::TempDir temporary;
  const test::Environment environment(
      {{"HF_HOME", home.path().string()}, {"HF_ENDPOINT", server.endpoint("ok")}, {"TMPDIR", temporary.path().string()}});
  const SourceFiles source = resolve_source(request_for("org/set", true));
  CHECK(server.requests("/resolve/").size() == 1);  // the card
  CHECK(source.files.at(0).identity.size() == 64);
  CHECK(read(source) == Texts{"a", "b"});
  CHECK(fs::is_empty(temporary.path()));
  CHECK(std::distance(fs::directory_iterator(home / "hub/datasets--org--set/blobs"), {}) == 1);
}

TEST_CASE("hub: splits that are not there are named with those that are", "[hub]") {
  const test::HubServer server;
  fill(server);
  const test::TempDir home;
  const test::Environment environment({{"HF_HOME", home.path().string()}, {"HF_ENDPOINT", server.endpoint("ok")}});
  SourceRequest request = request_for("org/set");
  request.hf_split = "validation";
  CHECK_THROWS_WITH(resolve_source(request), Contains("has no split \"validation\"; there are test, train"));
}

TEST_CASE("hub: what datasets has prepared is found offline", "[hub]") {
  const test::TempDir home;
  const fs::path folder = home / "datasets/org___set/default/0.0.0/0123abcd";
  fs::create_directories(folder);
  fs::copy_file(fs::path(KF_SOURCE_DIR) / "tests/unit/data/read/tables/dict/test/data-00000-of-00001.arrow", folder / "set-train.arrow");
  const test::Environment environment({{"HF_HOME", home.path().string()}, {"HF_HUB_OFFLINE", "1"}});
  CHECK_THROWS_WITH(resolve_source(request_for("org/set")), Contains("neither"));  // cut off: no dataset_info.json
  home.write("datasets/org___set/default/0.0.0/0123abcd/dataset_info.json", "{}");
  const SourceFiles source = resolve_source(request_for("org/set"));
  REQUIRE(source.files.size() == 1);
  CHECK(source.files[0].kind.format == FileFormat::arrow);
}
