// `kf-host tokenizer`, by the program.

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/process.h"
#include "support/temp_dir.h"

namespace fs = std::filesystem;

namespace kf::test {
namespace {

using Catch::Matchers::Contains;

Finished tokenizer(std::vector<std::string> words, const std::string& in = "") {
  std::vector<std::string> argv{KF_HOST, "tokenizer"};
  argv.insert(argv.end(), words.begin(), words.end());
  Options options;
  options.in = in;
  return run(argv, options);
}

std::string sample(const char* name) { return std::string(KF_SOURCE_DIR) + "/tests/unit/data/tokenizer/files/" + name; }

TEST_CASE("tokenizer: encode reads one JSON string a line and prints one array a line", "[tokenizer]") {
  const Finished lines = tokenizer({"encode", "bytes", "--jsonl"}, "\"ab\"\n\"\"\n\"\\u00e9\\ud800\"\n");
  CHECK(lines.status == 0);
  CHECK(lines.out == "[97,98]\n[]\n[195,169,239,191,189]\n");
  const Finished special = tokenizer({"encode", sample("byte_gpt2"), "--jsonl"}, "\"<|endoftext|>\"\n");
  CHECK(special.out == "[0]\n");
  CHECK(tokenizer({"encode", sample("byte_gpt2"), "--jsonl", "--special", "text"}, "\"<|endoftext|>\"\n").out != "[0]\n");
  const Finished refused = tokenizer({"encode", sample("byte_gpt2"), "--jsonl", "--special=error"}, "\"a\"\n\"x<|endoftext|>\"\n");
  CHECK(refused.status == 5);
  CHECK_THAT(refused.err, Contains("<|endoftext|>") && Contains("line 2"));
}

TEST_CASE("tokenizer: what decode prints, encode takes back", "[tokenizer]") {
  const Finished ids = tokenizer({"encode", sample("split_o200k"), "--jsonl"}, "\"na\xc3\xafve \\u2028 text\\n\"\n");
  REQUIRE(ids.status == 0);
  const Finished text = tokenizer({"decode", sample("split_o200k"), "--jsonl"}, ids.out);
  CHECK(text.out == "\"na\xc3\xafve \\u2028 text\\n\"\n");
}

TEST_CASE("tokenizer: a file of every kind gives the program the ids that its library gives", "[tokenizer]") {
  std::size_t kinds = 0;
  for (const fs::directory_entry& kind : fs::directory_iterator(sample(""))) {
    std::ifstream cases(kind.path() / "cases.jsonl");
    std::string texts;
    std::vector<nlohmann::json> wanted;
    for (std::string line; std::getline(cases, line);) {
      const nlohmann::json entry = nlohmann::json::parse(line);
      if (entry.contains("ids") && entry.contains("text")) {
        texts += entry["text"].dump() + "\n";
        wanted.push_back(entry["ids"]);
      }
    }
    const Finished done = tokenizer({"encode", kind.path().string(), "--jsonl"}, texts);
    INFO(kind.path() << ": " << done.err);
    REQUIRE(done.status == 0);
    std::istringstream out(done.out);
    std::size_t right = 0;
    for (std::string line; std::getline(out, line);) {
      right += right < wanted.size() && nlohmann::json::parse(line) == wanted[right] ? 1 : 0;
    }
    CHECK(right == wanted.size());
    CHECK(wanted.size() > 10);
    ++kinds;
  }
  CHECK(kinds >= 13);
}

TEST_CASE("tokenizer: broken input names its line, wrong words the right ones", "[tokenizer]") {
  const Finished cut = tokenizer({"encode", "bytes", "--jsonl"}, "\"a\"\n\"b\n");
  CHECK(cut.status == 5);
  CHECK(cut.out == "[97]\n");
  CHECK_THAT(cut.err, Contains("standard input, line 2"));
  const Finished number = tokenizer({"decode", "bytes", "--jsonl"}, "[1, 2.5]\n");
  CHECK(number.status == 5);
  CHECK_THAT(number.err, Contains("line 1") && Contains("[1]"));
  CHECK(tokenizer({"decode", "bytes", "999"}).status == 5);
  const Finished option = tokenizer({"encode", "bytes", "--jsnl"});
  CHECK(option.status == 2);
  CHECK_THAT(option.err, Contains("did you mean '--jsonl'"));
  CHECK(tokenizer({"encode", "/no/such/file", "x"}).status == 5);
  CHECK(tokenizer({"frobnicate"}).status == 2);
  CHECK(tokenizer({}).status == 2);
  CHECK(tokenizer({"--help"}).status == 0);
}

TEST_CASE("tokenizer: train writes a tokenizer that encode and info read", "[tokenizer]") {
  const TempDir folder;
  std::string text;
  for (int i = 0; i < 200; ++i) {
    text += "the cat and the other cats sat on the mat\n";
  }
  const std::string file = folder.write("text.txt", text).string();
  const std::string out = (folder / "tok").string();
  const Finished trained = tokenizer({"train", file, "--vocab-size", "270", "--out", out, "--special", "<s>", "--special", "</s>"});
  INFO(trained.err);
  REQUIRE(trained.status == 0);
  const Finished info = tokenizer({"info", out, "--format", "json"});
  CHECK_THAT(info.out, Contains("\"vocab_size\": 270") && Contains("\"bos_id\": 0") && Contains("\"eos_id\": 1"));
  CHECK(tokenizer({"encode", out, "</s>"}).out == "[1]\n");
  CHECK(tokenizer({"train", file, "--vocab-size", "5000", "--out", out}).status == 5);
  CHECK(tokenizer({"train", file, "--vocab-size", "lots", "--out", out}).status == 2);
}

TEST_CASE("tokenizer: train reads what data info reads: folders, patterns, fields of records, compressed files and a job's data",
          "[tokenizer]") {
  const TempDir folder;
  const std::string line = "the cat and the other cats sat on the mat\n";
  std::string text;
  std::string records;
  std::string bodies;
  for (int i = 0; i < 200; ++i) {
    text += line;
    records += "{\"text\": \"the cat and the other cats sat on the mat\\n\"}\n";
    bodies += "{\"title\": \"zzzz qqqq\", \"body\": \"the cat and the other cats sat on the mat\\n\"}\n";
  }
  folder.write("plain/a.txt", text);
  folder.write("records/a.jsonl", records);
  folder.write("bodies/a.jsonl", bodies);
  folder.write("job.toml", "[model]\nvocab_size = 300\n[data]\nhf_dataset_text_field = \"body\"\n[[data.datasets]]\npath = \"" +
                               (folder / "bodies").string() + "\"\nfile_pattern = \"*.jsonl\"\n");
  const auto learned = [&](std::vector<std::string> words) {
    const std::string out = (folder / "tok").string();
    words.insert(words.begin(), "train");
    words.insert(words.end(), {"--vocab-size", "270", "--out", out});
    const Finished done = tokenizer(words);
    INFO(done.err);
    REQUIRE(done.status == 0);
    std::ifstream file(out + "/tokenizer.json");
    std::stringstream content;
    content << file.rdbuf();
    return content.str();
  };
  const std::string wanted = learned({(folder / "plain" / "a.txt").string()});
  CHECK(learned({(folder / "plain").string()}) == wanted);
  CHECK(learned({(folder / "pl*" / "*.txt").string()}) == wanted);
  CHECK(learned({(folder / "records").string()}) == wanted);
  CHECK(learned({(folder / "bodies").string(), "--data.hf_dataset_text_field=body"}) == wanted);
  CHECK(learned({"--job", (folder / "job.toml").string()}) == wanted);
  CHECK_THAT(tokenizer({"train", (folder / "none").string(), "--vocab-size=270", "--out=x"}).err, Contains("none"));
  CHECK_THAT(tokenizer({"train", (folder / "plain").string(), "--job", "x.toml", "--vocab-size=270", "--out=x"}).err,
             Contains("one of them"));
}

TEST_CASE("tokenizer: a model with fewer rows than the tokenizer has ids is refused, naming both", "[tokenizer]") {
  const TempDir folder;
  folder.write("text.txt", std::string(5000, 'a'));
  folder.write("job.toml",
               "[model]\ndim = 16\nn_layers = 1\nn_heads = 2\nvocab_size = 100\n[train]\nseq_len = 8\nbatch_size = 2\nmax_steps = 1\n"
               "[data]\ndataset_path = \"text.txt\"\ntokenizer_path = \"" +
                   sample("byte_gpt2") + "\"\n");
  Options options;
  options.cwd = folder.path();
  const Finished refused = run({KF_HOST, "job.toml"}, options);
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err, Contains("byte_gpt2") && Contains("600 ids") && Contains("model.vocab_size is 100"));
}

}  // namespace
}  // namespace kf::test
