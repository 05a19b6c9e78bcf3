// `kf-host data info` through the real program.

#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include <fstream>

#include "support/process.h"
#include "support/temp_dir.h"

namespace {

using Catch::Matchers::Contains;
using kf::test::Finished;
using nlohmann::json;

const std::string kFiles = std::string(KF_SOURCE_DIR) + "/tests/unit/data/read/files/";

Finished info(std::vector<std::string> arguments, const kf::test::Options& options = {}) {
  std::vector<std::string> call{KF_HOST, "data", "info"};
  call.insert(call.end(), arguments.begin(), arguments.end());
  return kf::test::run(call, options);
}

json info_json(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--format", "json"});
  const Finished run = info(arguments);
  INFO(run.err);
  REQUIRE(run.status == 0);
  return json::parse(run.out);
}

}  // namespace

TEST_CASE("data info: text in every wrapping has the same documents, characters, bytes and digest", "[data]") {
  const std::string file =
      GENERATE(as<std::string>{}, "docs.jsonl", "docs.jsonl.gz", "docs.jsonl.zst", "docs_snappy.parquet", "docs_save_to_disk");
  CAPTURE(file);
  const json found = info_json({kFiles + file});
  CHECK(found.at("documents") == 40);
  CHECK(found.at("characters") == 10420);
  CHECK(found.at("bytes") == 10436);
  CHECK(found.at("sha256") == "42aabe07c2ddf3bdc8b39b0e3509a7cdd95b590b99274952a7e917168c9cb8a9");
}

TEST_CASE("data info: token files give ids, type and digest", "[data]") {
  const json found = info_json({kFiles + "olmo_uint32.npy", "--data.token_dtype=uint32", "--data.eos_id=0"});
  CHECK(found.at("tokens") == 4439);
  CHECK(found.at("documents") == 30);
  CHECK(found.at("dtype") == "uint32");
  CHECK(found.at("sha256") == "7f0e1ca59921065d1199fbea680496b60673214ed39d3ba70c27fdb9a313bcbd");
  CHECK(info_json({kFiles + "real_uint16.npy"}).at("documents").is_null());
}

TEST_CASE("data info: a chat is noticed, and it is said", "[data]") {
  const Finished run = info({kFiles + "chat.jsonl"});
  CHECK(run.status == 0);
  CHECK_THAT(run.err, Contains("data.messages_field = \"messages\""));
  CHECK_THAT(run.out, Contains("5521ab8d0e694c03d394190f7755a0396aa63caf53adf4401ca7e5c5c0e6dfe9"));
}

TEST_CASE("data info: broken data end with status 5 and the place, or are counted", "[data]") {
  Finished run = info({kFiles + "broken_invalid_line.jsonl"});
  CHECK(run.status == 5);
  CHECK_THAT(run.err, Contains("broken_invalid_line.jsonl:7: not valid JSON"));
  run = info({kFiles + "broken_invalid_line.jsonl", "--data.on_error=skip"});
  CHECK(run.status == 0);
  CHECK_THAT(run.err, Contains("left out") && Contains("broken_invalid_line.jsonl:7"));
  CHECK_THAT(run.out, Contains("left out    1 broken records"));
  run = info({kFiles + "broken_empty.jsonl"});
  CHECK(run.status == 5);
  CHECK_THAT(run.err, Contains("holds no document"));
}

TEST_CASE("data info: a job's sources, by its keys", "[data]") {
  const kf::test::TempDir dir;
  dir.write("a.csv", "body\nx\n");
  const auto job =
      dir.write("job.toml", "[[data.datasets]]\nname = \"docs\"\npath = \"" + kFiles + "docs.jsonl\"\n[[data.datasets]]\npath = \"" +
                                (dir / "a.csv").string() + "\"\ntext_field = \"body\"\n");
  const json found = info_json({job.string()});
  REQUIRE(found.at("sources").size() == 2);
  CHECK(found["sources"][0].at("source") == "docs");
  CHECK(found["sources"][1].at("bytes") == 1);
}

TEST_CASE("data info: without the libraries of Arrow it says what to do", "[data]") {
  kf::test::Options options;
  options.env = {{"KF_ARROW_DIR", "/nowhere"}};
  const Finished run = info({kFiles + "docs_snappy.parquet"}, options);
  CHECK(run.status == 5);
  CHECK_THAT(run.err, Contains("pyarrow") && Contains("KF_ARROW_DIR is /nowhere") && Contains("make deps"));
}

TEST_CASE("data info: a data set of the hub by its name, and training on it as a stream", "[data]") {
  const kf::test::TempDir dir;
  kf::test::Options options;
  options.cwd = dir.path();
  options.env = {{"KF_CACHE_DIR", (dir / "cache").string()}};
  const std::string script = std::string(KF_SOURCE_DIR) + "/examples/hub-stand-in/run.sh";
  const Finished run = kf::test::run({script, KF_HOST, "--run.dir=" + (dir / "run").string()}, options);
  INFO(run.err);
  CHECK(run.status == 0);
  CHECK_THAT(run.err, !Contains("no effect"));
}

TEST_CASE("data: a beginning of documents that the tokenizer of bytes has not is refused", "[data]") {
  const kf::test::TempDir dir;
  kf::test::Options options;
  options.cwd = dir.path();
  dir.write("a.txt", "plain bytes are mapped as they are");
  const Finished run = kf::test::run({KF_HOST, "data", "build", (dir / "a.txt").string(), "--data.add_bos=true"}, options);
  CHECK(run.status == 5);
  CHECK_THAT(run.err, Contains("data.add_bos = true, but the tokenizer of bytes has no id that begins a document"));
}

TEST_CASE("data: words and keys that would mean nothing are refused", "[data]") {
  const kf::test::TempDir dir;
  kf::test::Options options;
  options.cwd = dir.path();
  dir.write("a.txt", "a text");
  const auto fails = [&](std::vector<std::string> call, const std::string& why) {
    call.insert(call.begin(), {KF_HOST, "data"});
    const Finished run = kf::test::run(call, options);
    CHECK(run.status == 2);
    CHECK_THAT(run.err, Contains(why));
  };
  fails({"peek", "a.txt", "--rows=2"}, "--rows and --first show what a job reads: a.txt is none");
  fails({"stats", "a.txt", "--rows=2"}, "are words of data peek");
  fails({"build", "a.txt", "--data.special_tokens=special"}, "the tokenizer of bytes never reads special tokens from text");
  const std::string model = std::string(KF_SOURCE_DIR) + "/tests/unit/data/tokenizer/files/spm_bpe_bytes";
  fails({"build", "a.txt", "--data.special_tokens=special", "--data.tokenizer_path=" + model}, "never reads special tokens from text");
}

TEST_CASE("data: settings that do not change what is read are said to have no effect", "[data]") {
  const kf::test::TempDir folder;
  folder.write("a.txt", "words");
  kf::test::Options options;
  options.cwd = folder.path();
  for (const char* command : {"info", "stats"}) {
    const Finished done =
        kf::test::run({KF_HOST, "data", command, "a.txt", "--optimizer.lr=1", "--train.max_steps=3", "--train.seq_len=4"}, options);
    INFO(command << done.err);
    CHECK(done.status == 0);
    CHECK_THAT(done.err, Contains("optimizer.lr has no effect here") && Contains("train.max_steps has no effect here"));
    CHECK_THAT(done.err, !Contains("seq_len has no effect"));
  }
}

TEST_CASE("data: chats without an answer are no data to learn answers from", "[data]") {
  const kf::test::TempDir dir;
  kf::test::Options options;
  options.cwd = dir.path();
  dir.write("chats.jsonl", R"({"messages": [{"role": "user", "content": "hi"}, {"role": "bot", "content": "hello"}]})");
  const auto build = [&](const std::string& which) {
    return kf::test::run({KF_HOST, "data", "build", "chats.jsonl", "--data.messages_field=messages", "--data.loss_on=" + which}, options);
  };
  const Finished answers = build("answers");
  CHECK(answers.status == 5);
  CHECK_THAT(answers.err, Contains("no answer (a message of the role assistant) has a content"));
  CHECK(build("all").status == 0);
}

TEST_CASE("data: of chats only the answers count where that is asked for", "[data]") {
  const kf::test::TempDir dir;
  kf::test::Options options;
  options.cwd = dir.path();
  const std::string job = std::string(KF_SOURCE_DIR) + "/examples/chat/job.toml";
  const std::string path = "--data.dataset_path=" + std::string(KF_SOURCE_DIR) + "/examples/chat/chats.jsonl";
  const auto first_loss = [&](const std::string& which) {
    const Finished run =
        kf::test::run({KF_HOST, job, path, "--train.max_steps=1", "--run.name=" + which, "--data.loss_on=" + which}, options);
    INFO(run.err);
    REQUIRE(run.status == 0);
    CHECK_THAT(run.err, !Contains("no effect"));
    std::ifstream metrics(dir / ("runs/" + which + "/metrics.jsonl"));
    std::string line;
    while (std::getline(metrics, line)) {
      const json entry = json::parse(line);
      if (entry.contains("loss")) {
        return entry["loss"].get<double>();
      }
    }
    FAIL("no loss in the metrics");
    return 0.0;
  };
  CHECK(first_loss("all") != first_loss("answers"));
}
