// What goes with an exported model: how texts begin, how chats are written.

#include <catch2/catch.hpp>

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/fs.h"
#include "e2e/toy.h"

namespace fs = std::filesystem;
using Catch::Matchers::Contains;
using kf::test::Finished;
using kf::test::Toy;
using nlohmann::json;

namespace {

const std::string kFiles = std::string(KF_SOURCE_DIR) + "/tests/unit/data/tokenizer/files/";

Finished good(Finished done) {
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  return done;
}

/// Byte-level BPE whose file begins texts with <s>, or does not.
void write_tokenizer(const Toy& toy, bool begins) {
  json file = json::parse(std::ifstream(kFiles + "byte_gpt2/tokenizer.json"));
  if (begins) {
    const json text{{"Sequence", {{"id", "A"}, {"type_id", 0}}}}, first{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}};
    file["post_processor"] = {{"type", "TemplateProcessing"},
                              {"single", json::array({first, text})},
                              {"pair", json::array({first, text})},
                              {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", json::array({1})}, {"tokens", json::array({"<s>"})}}}}}};
  }
  toy.write("tokens/tokenizer.json", file.dump());
  toy.write("tokens/tokenizer_config.json", R"({"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>"})");
}

Finished train(const Toy& toy, const std::string& name, std::vector<std::string> more) {
  more.insert(more.begin(), {"--run.name=" + name, "--model.vocab_size=600", "--data.tokenizer_path=tokens", "--eval.enabled=false"});
  return good(toy.train(more));
}

json answer(const Toy& toy, std::vector<std::string> more) {
  more.insert(more.begin(), "generate");
  more.insert(more.end(), {"--prompt", "line 3", "--temperature", "0", "--max-new-tokens", "6", "--format", "json"});
  json out = json::parse(good(toy.host(more)).out);
  return json{{"prompt_tokens", out["prompt_tokens"]}, {"text", out["text"]}};
}

/// What transformers make of "line 3" with the tokenizers of folders, in one process; none where they are not there.
std::vector<json> in_transformers(const std::vector<fs::path>& folders) {
  const fs::path libraries = fs::path(KF_SOURCE_DIR) / ".deps/transformers-oracle";
  if (!fs::exists(libraries / "transformers")) {
    WARN("Python's transformers are not in .deps/transformers-oracle (scripts/transformers.sh): exports are read by kf-host alone");
    return {};
  }
  kf::test::Options options;
  options.env = {{"PYTHONPATH", libraries.string()}, {"LD_LIBRARY_PATH", (libraries / "stubs").string()}, {"HF_HUB_OFFLINE", "1"}};
  std::vector<std::string> command{"python3", KF_SOURCE_DIR "/tests/support/transformers_texts.py", "line 3"};
  for (const fs::path& folder : folders) {
    command.push_back(folder.string());
  }
  std::istringstream lines(good(kf::test::run(command, options)).out);
  std::vector<json> out;
  for (std::string line; std::getline(lines, line);) {
    out.push_back(json::parse(line));
  }
  REQUIRE(out.size() == folders.size());
  return out;
}

}  // namespace

TEST_CASE("export: readers begin texts as the model was trained, whatever the tokenizer's files said", "[export]") {
  struct Case {
    bool file_begins, trained_so;
    Toy toy;
    json ours;
  };
  std::array<Case, 4> cases;
  std::vector<fs::path> exports;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    auto& [file_begins, trained_so, toy, ours] = cases[i];
    file_begins = i / 2 == 1;
    trained_so = i % 2 == 1;
    CAPTURE(file_begins, trained_so);
    write_tokenizer(toy, file_begins);
    train(toy, "a", {std::string("--data.add_bos=") + (trained_so ? "true" : "false")});
    const Finished done = good(toy.host({"export", "runs/a", "out", "--dtype", "float32"}));
    CHECK((done.err.find("data.add_bos") != std::string::npos) == (file_begins != trained_so));
    CHECK((toy.read("out/tokenizer.json") == toy.read("tokens/tokenizer.json")) == (file_begins == trained_so));
    ours = answer(toy, {"runs/a"});
    CHECK(answer(toy, {"out"}) == ours);
    exports.push_back(toy / "out");
  }
  const std::vector<json> theirs = in_transformers(exports);
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    CAPTURE(cases[i].file_begins, cases[i].trained_so);
    CHECK(theirs[i]["ids"].size() == cases[i].ours["prompt_tokens"]);
    CHECK((theirs[i]["ids"][0] == 1) == cases[i].trained_so);
  }
}

TEST_CASE("export: where files of a tokenizer cannot say how texts begin for every reader, a warning does", "[export]") {
  const Toy toy;
  train(toy, "a", {"--model.vocab_size=1000", "--data.tokenizer_path=" + kFiles + "spm_bpe_bytes", "--train.max_steps=5"});
  const Finished done = good(toy.host({"export", "runs/a", "out", "--dtype", "float32"}));
  CHECK_THAT(done.err, Contains("data.add_bos = false") && Contains("add_bos_token = false") && Contains("warn"));
  CHECK(answer(toy, {"out"}) == answer(toy, {"runs/a"}));
}

TEST_CASE("export: the template of chats goes with the model, into folders and GGUF files", "[export]") {
  const Toy toy;
  write_tokenizer(toy, true);
  fs::copy(fs::path(KF_SOURCE_DIR) / "examples/chat/chats.jsonl", toy / "chats.jsonl");
  const std::string written = "{{ bos_token }}" + kf::read_file(fs::path(KF_SOURCE_DIR) / "examples/chat/chat.jinja");
  toy.write("mine.jinja", written);
  train(toy, "a",
        {"--data.dataset_path=chats.jsonl", "--data.messages_field=messages", "--data.chat_template=mine.jinja",
         "--checkpoint.hf_export_interval=10", R"(--data.chat_template_args={"more": true})"});
  fs::remove(toy / "mine.jinja");
  CHECK_THAT(good(toy.host({"export", "runs/a", "out", "--dtype", "float32"})).err, Contains("data.chat_template_args"));
  for (const char* folder : {"out", "runs/a/exports/step_10"}) {
    CHECK(toy.read(fs::path(folder) / "chat_template.jinja") == written);
    CHECK(json::parse(toy.read(fs::path(folder) / "tokenizer_config.json"))["chat_template"] == written);
  }
  const json ours = answer(toy, {"runs/a", "--chat"});
  CHECK(answer(toy, {"out", "--chat"}) == ours);
  for (const json& theirs : in_transformers({toy / "out"})) {
    CHECK(theirs["chat"].size() == ours["prompt_tokens"]);
    CHECK(theirs["chat"][0] == 1);
  }
  good(toy.host({"export", "runs/a", "out.gguf"}));
  CHECK(toy.read("out.gguf").find(written) != std::string::npos);
  fs::remove(toy / "out/chat_template.jinja");
  toy.write("out/tokenizer_config.json", "{}");
  const Finished none = toy.host({"generate", "out", "--chat", "--prompt", "hi"});
  CHECK(none.status == 2);
  CHECK_THAT(none.err, Contains("out has no chat template") && !Contains("\"tokenizer\""));
}

TEST_CASE("export: a template of chats goes with bytes", "[export]") {
  const Toy toy;
  fs::copy(fs::path(KF_SOURCE_DIR) / "examples/chat/chats.jsonl", toy / "chats.jsonl");
  fs::copy(fs::path(KF_SOURCE_DIR) / "examples/chat/chat.jinja", toy / "mine.jinja");
  good(toy.train({"--run.name=a", "--data.dataset_path=chats.jsonl", "--data.messages_field=messages", "--data.chat_template=mine.jinja",
                  "--eval.enabled=false"}));
  good(toy.host({"export", "runs/a", "out", "--dtype", "float32"}));
  const json said = json::parse(toy.read("out/tokenizer_config.json"));
  CHECK(said["chat_template"] == toy.read("mine.jinja"));
  CHECK(said["eos_token"] == "<|endoftext|>");
  CHECK(answer(toy, {"out", "--chat"}) == answer(toy, {"runs/a", "--chat"}));
  for (const json& theirs : in_transformers({toy / "out"})) {
    CHECK(theirs["chat"].size() == answer(toy, {"runs/a", "--chat"})["prompt_tokens"]);
  }
}
