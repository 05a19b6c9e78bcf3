// How models of Hugging Face folders end their answers, draw them, and begin what they read, through the real program.

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>

#include "e2e/toy.h"

using Catch::Contains;
using kf::test::Finished;
using kf::test::Toy;
using nlohmann::json;

namespace {

const std::filesystem::path kModel = std::filesystem::path(KF_SOURCE_DIR) / "tests/unit/train/eval/data/choices_model";

Finished good(Finished done) {
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  return done;
}

/// A copy of the folder in `toy`, its config.json with more in it.
void copy_model(const Toy& toy, const json& more = json::object()) {
  std::filesystem::create_directory(toy / "m");
  std::filesystem::copy_file(kModel / "model.safetensors", toy / "m/model.safetensors");
  json config = json::parse(std::ifstream(kModel / "config.json"));
  config.merge_patch(more);
  toy.write("m/config.json", config.dump());
  toy.write("p.jsonl", "{\"ids\": [116, 104, 101]}\n");
}

json answer(const Toy& toy, const std::vector<std::string>& more) {
  std::vector<std::string> args{"generate", "m", "--prompts", "p.jsonl", "--max-new-tokens", "12", "--format", "json"};
  args.insert(args.end(), more.begin(), more.end());
  return json::parse(good(toy.host(args)).out);
}

}  // namespace

TEST_CASE("answers: a folder's model ends at each id of generation_config.json, else of config.json, without a tokenizer, too") {
  const Toy toy;
  copy_model(toy);
  const std::vector<int> whole = answer(toy, {"--temperature=0"})["ids"];
  REQUIRE(whole.size() == 12);
  const auto until = [&](std::initializer_list<int> ends) {
    return std::vector<int>(whole.begin(), std::find_first_of(whole.begin(), whole.end(), ends.begin(), ends.end()));
  };
  const int a = whole[5], b = whole[8], unused = 255;

  toy.write("m/generation_config.json",
            json({{"eos_token_id", {unused, a, b}}, {"bos_token_id", 1}, {"transformers_version", "5"}}).dump());
  const json listed = answer(toy, {"--temperature=0"});
  CHECK(listed["ids"] == until({a, b}));
  CHECK(listed["stopped"] == "eos");
  toy.write("m/generation_config.json", json({{"eos_token_id", b}}).dump());
  CHECK(answer(toy, {"--temperature=0"})["ids"] == until({b}));
  CHECK_THAT(toy.host({"generate", "m", "--prompts", "p.jsonl"}).err,
             Contains("answers end at " + std::to_string(b)) && Contains("generation_config.json"));
  const json stopped = answer(toy, {"--temperature=0", "--stop-id", std::to_string(a)});
  CHECK(stopped["ids"] == until({a, b}));

  std::filesystem::remove(toy / "m/generation_config.json");
  std::filesystem::remove_all(toy / "m");
  copy_model(toy, {{"eos_token_id", {a, unused}}});
  CHECK(answer(toy, {"--temperature=0"})["ids"] == until({a}));
  toy.write("load.lua", "local kf = require('kf')\nlocal m = kf.load_model('m')\n");
  good(toy.host({"lua", "load.lua"}));

  toy.write("m/generation_config.json", "{\"eos_token_id\": \"x\"}");
  const Finished bad = toy.host({"generate", "m", "--prompts", "p.jsonl"});
  CHECK(bad.status == 2);
  CHECK_THAT(bad.err, Contains("generation_config.json") && Contains("eos_token_id"));
  CHECK_THAT(toy.host({"generate", "m", "--prompts", "p.jsonl", "--stop-id", "999"}).err, Contains("eos_token_id") || Contains("999"));
}

TEST_CASE("answers: a folder's sampling defaults are followed and said, below the command line; what is not followed is named") {
  const Toy toy;
  copy_model(toy);
  const json greedy = answer(toy, {"--temperature=0"})["ids"];
  CHECK(answer(toy, {})["ids"] != greedy);  // a temperature of 1
  toy.write("m/generation_config.json", json({{"do_sample", false}, {"temperature", 0.7}, {"top_k", 5}}).dump());
  CHECK(answer(toy, {})["ids"] == greedy);
  toy.write("m/generation_config.json",
            json({{"do_sample", true}, {"temperature", 0.7}, {"top_k", 5}, {"top_p", nullptr}, {"num_beams", 4}}).dump());
  const Finished done = good(toy.host({"generate", "m", "--prompts", "p.jsonl", "--max-new-tokens", "2"}));
  CHECK_THAT(done.err, Contains("generation_config.json: temperature 0.7, top_k 5") && Contains("num_beams"));
  const json file = answer(toy, {})["ids"];
  CHECK(file == answer(toy, {"--temperature=0.7", "--top-k=5"})["ids"]);
  CHECK(answer(toy, {"--temperature=0"})["ids"] == greedy);
  toy.write("m/generation_config.json", json({{"top_p", 1.5}}).dump());
  CHECK_THAT(toy.host({"generate", "m", "--prompts", "p.jsonl"}).err, Contains("top_p (1.5)"));
}

TEST_CASE("answers: of a model of one's own an answer ends where documents did in training, token files included") {
  const Toy toy;
  good(toy.train());
  const auto ids = [&](const std::vector<std::string>& more) {
    std::vector<std::string> args{"generate", "runs/toy",      "--prompt", "line ",    "--max-new-tokens",
                                  "12",       "--temperature", "0",        "--format", "json"};
    args.insert(args.end(), more.begin(), more.end());
    return json::parse(good(toy.host(args)).out)["ids"].get<std::vector<int>>();
  };
  const std::vector<int> whole = ids({});
  const int stop = whole[4];
  const std::vector<int> cut(whole.begin(), std::find(whole.begin(), whole.end(), stop));
  CHECK(ids({"--stop-id", std::to_string(stop)}) == cut);
  good(toy.train({"--run.name=stops", "--generate.stop_ids=[" + std::to_string(stop) + "]"}));
  const json of_job = json::parse(
      good(toy.host({"generate", "runs/stops", "--prompt", "line ", "--max-new-tokens", "12", "--temperature", "0", "--format", "json"}))
          .out);
  CHECK(of_job["ids"] == cut);
  CHECK(of_job["stopped"] == "stop");
  const Finished bad = toy.train({"--run.name=bad", "--generate.stop_ids=[5, 999]"});
  CHECK(bad.status == 2);
  CHECK_THAT(bad.err, Contains("generate.stop_ids has 999"));
  CHECK_THAT(toy.train({"--run.name=bad", "--generate.stop_ids=[-1]"}).err, Contains("generate.stop_ids[0]"));
  CHECK_THAT(toy.train({"--run.name=bad", "--eval.mtp_head=1"}).err, Contains("eval.mtp_head (1)"));
}

TEST_CASE("eval: a file of any length is scored whole: every label once, also of a text shorter than a window") {
  const Toy toy;
  good(toy.train());
  const auto tokens = [&](std::size_t bytes) {
    toy.write("t.txt", std::string(bytes, 'x'));
    return json::parse(good(toy.host({"eval", "runs/toy", "--data", "t.txt", "--format", "json"})).out)["eval"]["tokens"]
        .get<std::size_t>();
  };
  for (const std::size_t bytes : {1, 20, 31, 32, 33, 63, 64, 95}) {
    CHECK(tokens(bytes) == bytes);  // and the end, less the first
  }
}

TEST_CASE("eval: --documents gives lm-evaluation-harness's word and byte perplexity, with and without BOS") {
  const Toy toy;
  copy_model(toy);
  toy.write(
      "docs.jsonl",
      "{\"text\": \"The sky is blue.\\n\\n  And the grass  is green, or so they say; nobody looked at it for a while. This goes beyond 48 "
      "positions.\"}\n{\"text\": \"K\u00f6ln\u3000am Rhein\"}\n\"x\"\n");
  // HFLM.loglikelihood_rolling of lm_eval 0.4.13 over the same model, with byte_tokenizer.json; then with the template "<eos> $A".
  const auto check = [&](const std::vector<std::string>& more, double sum, double word, double byte, double bits) {
    std::vector<std::string> args{"eval", "m", "--documents", "docs.jsonl", "--format", "json"};
    args.insert(args.end(), more.begin(), more.end());
    const json result = json::parse(good(toy.host(args)).out);
    CHECK(result["documents"] == 3);
    CHECK(result["loglikelihood"].get<double>() == Approx(sum).epsilon(1e-5));
    CHECK(result["word_perplexity"].get<double>() == Approx(word).epsilon(1e-3));  // exp of 29 times less: 1e-5 of 30 nats
    CHECK(result["byte_perplexity"].get<double>() == Approx(byte).epsilon(1e-4));
    CHECK(result["bits_per_byte"].get<double>() == Approx(bits).epsilon(1e-5));
  };
  check({"--tokenizer=bytes"}, -757.1632385253906 - 96.93632507324219 - 5.579739570617676, 7486435525519.685, 444.5294622495529,
        8.796135230050762);
  json file = json::parse(std::ifstream(kModel.parent_path() / "byte_tokenizer.json"));
  file["post_processor"] = json::parse(R"({"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<eos>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {"<eos>": {"id": "<eos>", "ids": [256], "tokens": ["<eos>"]}}})");
  toy.write("m/tokenizer.json", file.dump());
  toy.write("m/tokenizer_config.json", R"({"bos_token": "<eos>", "eos_token": "<eos>"})");
  check({}, -758.6923980712891 - 103.607666015625 - 11.330923080444336, 12111862425699.105, 490.76453369738545, 8.93888718264736);
}
