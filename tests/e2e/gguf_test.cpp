// Trained models as GGUF files, run in llama.cpp where it can be had (scripts/gguf.sh).

#include <catch2/catch.hpp>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/fs.h"
#include "e2e/toy.h"

namespace {

using Catch::Matchers::Contains;
using kf::test::Finished;
using kf::test::Toy;
using nlohmann::json;
namespace fs = std::filesystem;

constexpr int kCount = 16;

fs::path oracle() {
  const char* const given = std::getenv("KF_GGUF_ORACLE");
  return given != nullptr ? fs::path(given) : fs::path(KF_SOURCE_DIR) / ".deps/gguf-oracle";
}

bool has_oracle() {
  if (fs::exists(oracle() / "xllamacpp") && fs::exists(oracle() / "gguf")) {
    return true;
  }
  WARN("llama.cpp (Python's gguf and xllamacpp) is not in .deps/gguf-oracle (scripts/gguf.sh): only headers of GGUF files were checked");
  return false;
}

json run_in_llama_cpp(const fs::path& file, const std::string& prompt) {
  kf::test::Options options;
  options.env = {{"PYTHONPATH", oracle().string()}, {"OMP_NUM_THREADS", "1"}};
  const Finished done = kf::test::run(
      {"python3", std::string(KF_SOURCE_DIR) + "/tests/e2e/gguf_oracle.py", file.string(), prompt, std::to_string(kCount)}, options);
  INFO(done.err);
  REQUIRE(done.status == 0);
  return json::parse(done.out);
}

json run_here(const Toy& toy, const std::string& prompt) {
  const Finished done = toy.host({"generate", "runs/toy", "--prompt", prompt, "--max-new-tokens", std::to_string(kCount), "--temperature",
                                  "0", "--format", "json", "--logprobs"});
  INFO(done.err);
  REQUIRE(done.status == 0);
  return json::parse(done.out);
}

struct Family {
  std::string architecture;
  std::vector<std::string> settings;
};

enum class Tokens { bytes, bpe, pieces };

std::vector<std::string> settings_of(Tokens tokens) {
  const std::string source = "--data.tokenizer_path=" + std::string(KF_SOURCE_DIR);
  switch (tokens) {
    case Tokens::bytes: return {};
    case Tokens::bpe: return {"--model.vocab_size=512", source + "/examples/hub-stand-in/root/kf-host/tiny"};
    case Tokens::pieces: return {"--model.vocab_size=1000", source + "/tests/unit/data/tokenizer/files/spm_bpe_bytes"};
  }
  return {};
}

}  // namespace

TEST_CASE("gguf: trained models give the same greedy text and log-probabilities in llama.cpp", "[gguf]") {
  const Family family =
      GENERATE(Family{"llama", {}},
               Family{"llama", {"--model.rope_scaling=llama3", "--model.rope_factor=8", "--model.rope_orig_len=32", "--model.head_dim=24"}},
               Family{"llama", {"--model.attn_bias=all", "--model.rope_layout=interleaved"}}, Family{"llama", {"--model.attn_bias=all"}},
               Family{"qwen2", {"--model.attn_bias=qkv", "--model.tie_embeddings=true"}},
               Family{"qwen3", {"--model.qk_norm=true", "--model.head_dim=16"}},
               Family{"gemma",
                      {"--model.norm_unit_offset=true", "--model.embed_scale=0", "--model.activation=gelu_tanh", "--model.mlp_gated=true",
                       "--model.tie_embeddings=true"}});
  const Tokens tokens = family.settings.empty() ? GENERATE(Tokens::bytes, Tokens::bpe, Tokens::pieces) : Tokens::bpe;
  CAPTURE(family.architecture, family.settings, static_cast<int>(tokens));
  const Toy toy;
  std::vector<std::string> settings = family.settings;
  settings.insert(settings.end(), {"--model.init_std=0.15", "--model.ffn_hidden_dim=64"});
  const std::vector<std::string> tokenizer = settings_of(tokens);
  settings.insert(settings.end(), tokenizer.begin(), tokenizer.end());
  REQUIRE(toy.train(settings).status == 0);
  const Finished done = toy.host({"export", "runs/toy", "toy.gguf", "--dtype", "F32"});
  INFO(done.err);
  REQUIRE(done.status == 0);
  CHECK(kf::read_file(toy / "toy.gguf").substr(0, 4) == "GGUF");
  if (!has_oracle()) {
    return;
  }
  const std::string prompt = "line 13 of a text's end,\n  and 1234567 more";
  const json theirs = run_in_llama_cpp(toy / "toy.gguf", prompt), ours = run_here(toy, prompt);
  CHECK(theirs["architecture"] == family.architecture);
  CHECK(theirs["prompt_tokens"] == ours["prompt_tokens"]);
  REQUIRE(theirs["ids"].size() > kCount - 4);  // an unfinished character at the end is kept back there
  for (std::size_t i = 0; i < theirs["ids"].size(); ++i) {
    CHECK(theirs["ids"][i] == ours["ids"][i]);
    // llama.cpp keeps keys and values in fp16.
    CHECK(std::abs(theirs["logprobs"][i].get<double>() - ours["logprobs"][i].get<double>()) < 0.02);
  }
}

TEST_CASE("gguf: files of every type run in llama.cpp", "[gguf]") {
  const Toy toy;
  REQUIRE(toy.train({"--model.init_std=0.15", "--model.ffn_hidden_dim=64"}).status == 0);
  std::uintmax_t before = 0;
  for (const char* type : {"Q8_0", "F16", "BF16", "F32"}) {
    CAPTURE(type);
    REQUIRE(toy.host({"export", "runs/toy", "toy.gguf", "--dtype", type}).status == 0);
    const std::uintmax_t size = fs::file_size(toy / "toy.gguf");
    CHECK(size >= before);
    before = size;
    if (has_oracle()) {
      const json theirs = run_in_llama_cpp(toy / "toy.gguf", "line 13 of"), ours = run_here(toy, "line 13 of");
      CHECK_THAT(theirs["types"].dump(), Contains(type));
      CHECK(std::abs(theirs["logprobs"][0].get<double>() - ours["logprobs"][0].get<double>()) < 0.2);
    }
  }
}

TEST_CASE("gguf: a file is looked into, compared and converted, and a run starts from it as from the checkpoint", "[gguf]") {
  const Toy toy;
  REQUIRE(toy.train({"--train.max_steps=2", "--eval.enabled=false", "--scheduler.warmup_steps=0"}).status == 0);
  REQUIRE(toy.host({"export", "runs/toy", "toy.gguf", "--dtype", "F32"}).status == 0);
  REQUIRE(toy.host({"export", "runs/toy", "small.gguf", "--dtype", "Q8_0"}).status == 0);
  const Finished info = toy.host({"checkpoint", "info", "small.gguf"});
  CHECK_THAT(info.out,
             Contains("general.architecture") && Contains("llama.embedding_length") && Contains("blk.*.attn_q.weight") && Contains("Q8_0"));
  CHECK_THAT(toy.host({"checkpoint", "verify", "toy.gguf"}).out, Contains("tensors as the header says"));
  CHECK_THAT(toy.host({"checkpoint", "diff", "runs/toy", "toy.gguf"}).out, Contains("the same: 0 weights moved"));
  CHECK_THAT(toy.host({"checkpoint", "diff", "runs/toy", "small.gguf"}).out, !Contains("only in") && Contains("weights moved"));
  REQUIRE(toy.host({"checkpoint", "convert", "toy.gguf", "toy.safetensors"}).status == 0);
  CHECK_THAT(toy.host({"checkpoint", "diff", "runs/toy", "toy.safetensors"}).out, Contains("the same: 0 weights moved"));
  // No [model] but what the header says.
  const std::string job = toy.read("toy.toml");
  toy.write("bare.toml", job.substr(job.find("[train]")));
  const auto loss = [&](const std::string& job_file, const std::string& source) {
    const Finished done = toy.host({job_file, "--run.name=next", "--run.fresh=true", "--checkpoint.init_from=" + source,
                                    "--train.max_steps=1", "--eval.enabled=false", "--scheduler.warmup_steps=0"});
    INFO(done.err);
    REQUIRE(done.status == 0);
    return toy.series("next", "loss");
  };
  CHECK(loss("bare.toml", "toy.gguf") == loss("toy.toml", "runs/toy"));
  // Cut short.
  const std::string bytes = toy.read("toy.gguf");
  toy.write("cut.gguf", bytes.substr(0, bytes.size() / 2));
  const Finished cut = toy.host({"checkpoint", "verify", "cut.gguf"});
  CHECK(cut.status == 6);
  CHECK_THAT(cut.out, Contains("cut short or damaged"));
  CHECK_THAT(toy.train({"--run.name=cut", "--checkpoint.init_from=cut.gguf"}).err, Contains("cut short or damaged"));
}

TEST_CASE("gguf: a file that is no GGUF file is not overwritten, and a link stays one", "[gguf]") {
  const Toy toy;
  REQUIRE(toy.train({"--train.max_steps=1", "--eval.enabled=false", "--checkpoint.interval=1", "--scheduler.warmup_steps=0"}).status == 0);
  toy.write("notes.gguf", "my notes");
  fs::create_directory(toy / "folder.gguf");
  fs::create_symlink("nowhere", toy / "lost.gguf");
  for (const char* name : {"notes.gguf", "folder.gguf"}) {
    const Finished done = toy.host({"export", "runs/toy", name});
    CHECK(done.status == 2);
    CHECK_THAT(done.err, Contains("is there and is no GGUF file"));
  }
  CHECK(toy.read("notes.gguf") == "my notes");
  CHECK_THAT(toy.host({"export", "runs/toy", "lost.gguf"}).err, Contains("a link that leads nowhere"));
  fs::create_symlink("real.gguf", toy / "link.gguf");
  toy.write("real.gguf", "");
  for (int i = 0; i < 2; ++i) {
    REQUIRE(toy.host({"export", "runs/toy", "link.gguf"}).status == 0);
    CHECK(fs::is_symlink(toy / "link.gguf"));
    CHECK(toy.read("real.gguf").starts_with("GGUF"));
  }
}

TEST_CASE("gguf: what llama.cpp cannot run is refused with all its reasons, and leaves no file", "[gguf]") {
  const Toy toy;
  SECTION("settings") {
    REQUIRE(toy.train({"--train.max_steps=1", "--eval.enabled=false", "--checkpoint.interval=1", "--scheduler.warmup_steps=0",
                       "--model.norm_placement=post", "--model.attn_softcap=20", "--model.activation=gelu"})
                .status == 0);
    const Finished done = toy.host({"export", "runs/toy", "toy.gguf"});
    CHECK(done.status == 2);
    CHECK_THAT(done.err,
               Contains("model.norm_placement = \"post\"") && Contains("model.attn_softcap = 20.0") && Contains("model.activation"));
  }
  SECTION("a type, a tokenizer, a folder") {
    REQUIRE(toy.train({"--train.max_steps=1", "--eval.enabled=false", "--checkpoint.interval=1", "--scheduler.warmup_steps=0"}).status ==
            0);
    CHECK_THAT(toy.host({"export", "runs/toy", "toy.gguf", "--dtype", "Q4_K"}).err, Contains("F32, F16, BF16, Q8_0"));
    CHECK_THAT(toy.host({"export", "runs/toy", "none/toy.gguf"}).err, Contains("no folder to write into"));
  }
  CHECK(!fs::exists(toy / "toy.gguf"));
}
