// A run with adapters, from outside: what it saves, that it goes on, what is exported.

#include <catch2/catch.hpp>

#include <fstream>

#include "e2e/toy.h"

namespace fs = std::filesystem;
using kf::test::Finished;
using kf::test::Toy;

namespace {

/// The JSON header of a safetensors file.
std::string header_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::uint64_t size = 0;
  in.read(reinterpret_cast<char*>(&size), sizeof size);
  std::string text(size, ' ');
  in.read(text.data(), static_cast<std::streamsize>(size));
  return text;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

const std::vector<std::string> kJob{
    "--checkpoint.init_from=runs/base", "--adapter.name=lora", "--adapter.rank=4", "--adapter.dropout=0.1", "--optimizer.lr=0.02",
    "--scheduler.total_steps=10"};

Finished with_adapter(const Toy& toy, std::vector<std::string> more) {
  more.insert(more.begin(), kJob.begin(), kJob.end());
  return toy.train(more);
}

std::string said(const Toy& toy, const std::string& model) {
  const Finished done = toy.host({"generate", model, "--prompt", "line", "--temperature", "0", "--max-new-tokens", "16"});
  INFO(done.err);
  CHECK(done.status == 0);
  return done.out;
}

}  // namespace

TEST_CASE("adapter: checkpoints hold it alone, a run goes on to the bit, and exports are read", "[adapter]") {
  const Toy toy;
  REQUIRE(toy.train({"--run.name=base", "--train.max_steps=4"}).status == 0);
  const Finished whole = with_adapter(toy, {"--run.name=whole"});
  INFO(whole.err);
  REQUIRE(whole.status == 0);
  REQUIRE(with_adapter(toy, {"--run.name=parts", "--train.max_steps=5"}).status == 0);
  const Finished rest = with_adapter(toy, {"--run.name=parts"});
  INFO(rest.err);
  REQUIRE(rest.status == 0);
  CHECK(has(rest.err, "resumed from"));
  CHECK(toy.series("parts", "loss") == toy.series("whole", "loss"));
  CHECK(toy.read("runs/parts/checkpoints/step_10/model.safetensors") == toy.read("runs/whole/checkpoints/step_10/model.safetensors"));

  for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
    const std::string names = header_of(toy / "runs/whole/checkpoints/step_10" / file);
    CAPTURE(names);
    CHECK(has(names, "layers.0.attention.q_proj.lora.a"));
    CHECK(has(names, "layers.1.attention.o_proj.lora.b"));
    CHECK_FALSE(has(names, "q_proj.weight"));
    CHECK_FALSE(has(names, "embedding"));
  }

  const Finished merged = toy.host({"adapter", "export", "runs/whole", "merged", "--merged"});
  INFO(merged.err);
  REQUIRE(merged.status == 0);
  CHECK(said(toy, "merged") == said(toy, "runs/whole"));
  CHECK(said(toy, "merged") != said(toy, "runs/base"));
  const std::string names = header_of(toy / "merged/model.safetensors");
  CHECK(has(names, "layers.0.attention.q_proj.weight"));
  CHECK_FALSE(has(names, "lora"));
  const Finished from = toy.train({"--run.name=after", "--train.max_steps=1", "--checkpoint.init_from=merged"});
  INFO(from.err);
  CHECK(from.status == 0);

  const Finished peft = toy.host({"adapter", "export", "runs/whole", "peft"});
  INFO(peft.err);
  REQUIRE(peft.status == 0);
  CHECK(has(toy.read("peft/adapter_config.json"), "\"base_model_name_or_path\": \"runs/base\""));
  CHECK(has(header_of(toy / "peft/adapter_model.safetensors"), "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"));
  const std::vector<std::string> again{"--run.name=again", "--adapter.alpha=16", "--adapter.path=peft", "--optimizer.lr=1e-12",
                                       "--train.max_steps=1"};
  const Finished read = with_adapter(toy, again);
  INFO(read.err);
  REQUIRE(read.status == 0);
  CHECK(said(toy, "runs/again") == said(toy, "runs/whole"));
}

TEST_CASE("adapter: settings that do not fit are refused, and a base that nothing else holds is saved", "[adapter]") {
  const Toy toy;
  const Finished unnamed = toy.train({"--adapter.rank=4"});
  CHECK(unnamed.status == 2);
  CHECK(has(unnamed.err, "set adapter.name"));
  const Finished wrong = toy.train({"--adapter.name=lora", "--adapter.targets=[\"q_prj\"]", "--train.max_steps=1"});
  CHECK(wrong.status == 2);
  CHECK(has(wrong.err, "q_prj"));
  CHECK(toy.train({"--adapter.name=lora", "--adapter.rank=0"}).status == 2);
  CHECK(toy.train({"--adapter.name=lora", "--checkpoint.save_frozen=false"}).status == 2);
  const Finished alone = toy.train({"--adapter.name=lora", "--train.max_steps=5", "--run.name=alone"});
  INFO(alone.err);
  REQUIRE(alone.status == 0);
  CHECK(has(alone.err, "the adapter is trained beside initial weights"));
  CHECK(has(header_of(toy / "runs/alone/checkpoints/step_5/model.safetensors"), "q_proj.weight"));
  REQUIRE(toy.train({"--run.name=base", "--train.max_steps=1"}).status == 0);
  REQUIRE(with_adapter(toy, {"--train.max_steps=1", "--run.name=beside"}).status == 0);
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"eval", "runs/beside"}, {"generate", "runs/beside", "--prompt", "a"}, {"checkpoint", "merge-lora", "runs/beside", "merged"}}) {
    const Finished read = toy.host(words);
    INFO(read.err);
    CHECK(read.status == 0);
    CHECK(!has(read.err, "initial weights"));
  }
  const Finished none = toy.host({"adapter", "export", "nowhere", "out"});
  CHECK(none.status != 0);
}
