// kf-host checkpoint, on what real runs have saved; and runs that take a checkpoint in part.

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <limits>

#include "e2e/toy.h"

namespace fs = std::filesystem;
using Catch::Matchers::Contains;
using kf::test::Finished;
using kf::test::Toy;

namespace {

using Words = std::vector<std::string>;

Finished checkpoint(const Toy& toy, Words args) {
  args.insert(args.begin(), "checkpoint");
  Finished done = toy.host(args);
  UNSCOPED_INFO(done.out << done.err);
  return done;
}

Finished train(const Toy& toy, const std::string& name, Words more) {
  more.push_back("--run.name=" + name);
  Finished done = toy.train(more);
  UNSCOPED_INFO(done.out << done.err);
  return done;
}

bool same(const Toy& toy, const std::string& a, const std::string& b) {
  const Finished done = checkpoint(toy, {"diff", a, b});
  CHECK(done.status == 0);
  return done.out.starts_with("the same: 0 weights moved");
}

void damage(const fs::path& file) {
  std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
  bytes.seekg(-5, std::ios::end);
  const char old = static_cast<char>(bytes.get());
  bytes.seekp(-5, std::ios::end);
  bytes.put(static_cast<char>(old ^ 1));
}

const Words kExperts{"--model.num_experts=4", "--model.moe_top_k=2", "--train.max_steps=2"};

}  // namespace

TEST_CASE("checkpoint: list and verify tell what is whole, info what is in it", "[checkpoint]") {
  const Toy toy;
  REQUIRE(train(toy, "a", {}).status == 0);
  const Finished list = checkpoint(toy, {"list", "runs/a"});
  CHECK(list.status == 0);
  CHECK_THAT(list.out, Contains("step_5 ") && Contains("step_10") && Contains("2 checkpoints"));
  CHECK_THAT(list.out, Contains("latest, whole"));
  CHECK(checkpoint(toy, {"verify", "runs/a"}).status == 0);
  CHECK_THAT(checkpoint(toy, {"list", "runs/a", "--format", "json"}).out, Contains("\"step\": 10") && Contains("\"latest\": true"));

  const Finished info = checkpoint(toy, {"info", "runs/a"});
  CHECK(info.status == 0);
  CHECK_THAT(info.out, Contains("step_10") && Contains("optimizer.name") && Contains("layers.*.attention.q_proj.weight"));
  CHECK_THAT(info.out, Contains("exp_avg_sq") && Contains("(257, 32)"));

  damage(toy / "runs/a/checkpoints/step_5/model.safetensors");
  CHECK_THAT(checkpoint(toy, {"list", "runs/a"}).out, !Contains("fault"));  // sizes alone
  CHECK_THAT(checkpoint(toy, {"list", "runs/a", "--verify"}).out, Contains("fault: ") && Contains("model.safetensors is damaged"));
  const Finished damaged = checkpoint(toy, {"verify", "runs/a"});
  CHECK(damaged.status == 6);
  CHECK_THAT(damaged.out, Contains("step_10: every byte is what was written"));
  CHECK(checkpoint(toy, {"verify", "runs/a/checkpoints/step_10"}).status == 0);
  CHECK(checkpoint(toy, {"list", "nowhere"}).status == 6);
  CHECK_THAT(checkpoint(toy, {"lst", "runs/a"}).err, Contains("did you mean 'list'?"));
}

TEST_CASE("checkpoint: diff says which weights moved, average is taken by everything that takes a checkpoint", "[checkpoint]") {
  const Toy toy;
  REQUIRE(train(toy, "a", {}).status == 0);
  REQUIRE(train(toy, "other", {"--model.n_layers=1", "--model.dim=16", "--train.max_steps=1"}).status == 0);
  const std::string five = "runs/a/checkpoints/step_5", ten = "runs/a/checkpoints/step_10";
  CHECK(same(toy, ten, "runs/a"));
  const Finished moved = checkpoint(toy, {"diff", five, ten, "--limit", "3"});
  CHECK(moved.status == 0);
  CHECK_THAT(moved.out, Contains("more weights that moved less") && Contains("0 are equal"));
  CHECK_THAT(checkpoint(toy, {"diff", ten, "runs/other"}).out, Contains("only in A: layers.1.") && Contains("in A and"));

  REQUIRE(checkpoint(toy, {"average", five, ten, "-o", "soup"}).status == 0);
  REQUIRE(checkpoint(toy, {"average", ten, ten, "-o", "same.safetensors"}).status == 0);
  CHECK(same(toy, ten, "same.safetensors"));
  CHECK_FALSE(same(toy, ten, "soup"));
  CHECK(checkpoint(toy, {"verify", "soup"}).status == 0);
  CHECK(toy.host({"generate", "soup", "--prompt", "line", "--max-new-tokens", "3"}).status == 0);
  CHECK(toy.host({"eval", "soup"}).status == 0);
  CHECK(train(toy, "from_folder", {"--checkpoint.init_from=soup", "--train.max_steps=1"}).status == 0);
  const Finished part = train(
      toy, "part", {"--checkpoint.init_from=soup", "--train.max_steps=1", "--checkpoint.exclude_from_loading=optimizer,rng,output_head.*"});
  CHECK_THAT(part.err, Contains("\"optimizer\" has no effect") && Contains("\"rng\" has no effect"));
  CHECK(train(toy, "from_file", {"--checkpoint.init_from=same.safetensors", "--train.max_steps=1"}).status == 0);
  const Finished misfit = checkpoint(toy, {"average", ten, "runs/other", "-o", "none"});
  CHECK(misfit.status == 6);
  CHECK_THAT(misfit.err, Contains("lacks (") && Contains("of other shapes ("));
  CHECK_FALSE(fs::exists(toy / "none"));
  CHECK_THAT(checkpoint(toy, {"average", five, ten, "-o", "soup"}).err, Contains("soup exists"));
}

TEST_CASE("checkpoint: convert changes type and the form of experts, and back again to the bit", "[checkpoint]") {
  const Toy toy;
  REQUIRE(train(toy, "moe", kExperts).status == 0);
  REQUIRE(checkpoint(toy, {"convert", "runs/moe", "packed.safetensors", "--experts", "packed"}).status == 0);
  const std::string names = toy.read("packed.safetensors").substr(0, 20'000);
  CHECK_THAT(names, Contains("mlp.gate_w") && !Contains("experts.0."));
  REQUIRE(checkpoint(toy, {"convert", "packed.safetensors", "each.safetensors", "--experts", "each"}).status == 0);
  CHECK(same(toy, "runs/moe", "each.safetensors"));
  REQUIRE(checkpoint(toy, {"convert", "runs/moe", "half", "--dtype", "bf16"}).status == 0);
  CHECK_THAT(checkpoint(toy, {"info", "half"}).out, Contains("bfloat16"));
  CHECK(toy.host({"generate", "half", "--prompt", "line", "--max-new-tokens", "3"}).status == 0);
  Words from = kExperts;
  from.push_back("--checkpoint.init_from=packed.safetensors");
  CHECK(train(toy, "again", from).status == 0);
}

TEST_CASE("checkpoint: prune removes what retention would, and never what latest names", "[checkpoint]") {
  const Toy toy;
  REQUIRE(train(toy, "a", {"--checkpoint.interval=2", "--checkpoint.keep_last_n=0"}).status == 0);
  const fs::path dir = toy / "runs/a/checkpoints";
  const Finished dry = checkpoint(toy, {"prune", "runs/a", "--keep-last", "2", "--dry-run"});
  CHECK(dry.status == 0);
  CHECK_THAT(dry.out, Contains("step_6") && !Contains("step_8 ") && Contains("would remove 3 of 5"));
  CHECK(fs::exists(dir / "step_2"));
  CHECK(checkpoint(toy, {"prune", "runs/a"}).status == 0);  // keep_last_n = 0 keeps all
  CHECK(fs::exists(dir / "step_2"));
  CHECK_THAT(checkpoint(toy, {"prune", "runs/a", "--keep-last=2"}).out, Contains("removed 3 of 5"));
  CHECK_FALSE(fs::exists(dir / "step_6"));
  CHECK(fs::exists(dir / "step_8"));
  CHECK(fs::exists(dir / "latest" / "state.json"));
  CHECK(checkpoint(toy, {"prune", "runs/a/checkpoints/step_10", "--keep-last=1"}).status == 2);
  CHECK(checkpoint(toy, {"prune", "runs/a", "--keep-last=0"}).status == 2);
}

TEST_CASE("checkpoint: prune counts whole checkpoints alone, and reads those that stay to the last byte", "[checkpoint]") {
  const Toy toy;
  REQUIRE(train(toy, "a", {"--checkpoint.interval=2", "--checkpoint.keep_last_n=0"}).status == 0);
  const fs::path dir = toy / "runs/a/checkpoints";
  damage(dir / "step_10/model.safetensors");  // what latest names; its size is right
  fs::resize_file(dir / "step_8/model.safetensors", 100);
  const Finished done = checkpoint(toy, {"prune", "runs/a", "--keep-last=1"});
  CHECK(done.status == 0);
  CHECK_THAT(done.err, Contains("step_10 is damaged") && Contains("step_8 is damaged"));
  CHECK_THAT(done.out, Contains("removed 2 of 5"));
  CHECK(fs::exists(dir / "step_6"));
  CHECK_FALSE(fs::exists(dir / "step_4"));
  CHECK(train(toy, "a", {"--train.max_steps=11", "--checkpoint.keep_last_n=0"}).status == 0);  // from step_6
  for (const char* step : {"step_6", "step_10", "step_11"}) {
    damage(dir / step / "model.safetensors");
  }
  const Finished none = checkpoint(toy, {"prune", "runs/a", "--keep-last=1"});
  CHECK(none.status == 0);  // nothing is certain to be whole, so nothing is old
  CHECK_THAT(none.out, Contains("removed 0 of 4"));
  CHECK(fs::exists(dir / "step_6"));
  CHECK(fs::exists(dir / "step_10"));
}

TEST_CASE("checkpoint: NaN in both is the same, and numbers that become infinite or are none are named", "[checkpoint]") {
  const Toy toy;
  const std::string header = R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  const auto file = [&](const std::string& name, float first) {
    std::string bytes(8, '\0');
    bytes[0] = static_cast<char>(header.size());
    bytes += header;
    const float numbers[] = {first, 1};
    bytes.append(reinterpret_cast<const char*>(numbers), sizeof numbers);
    toy.write(name, bytes);
  };
  file("big.safetensors", 1e6F);
  file("nan.safetensors", std::numeric_limits<float>::quiet_NaN());
  const Finished half = checkpoint(toy, {"convert", "big.safetensors", "half.safetensors", "--dtype", "fp16"});
  CHECK(half.status == 0);
  CHECK_THAT(half.err, Contains("too large for fp16") && Contains("w (1 of 2)"));
  CHECK(checkpoint(toy, {"convert", "big.safetensors", "brain.safetensors", "--dtype", "bf16"}).err.empty());
  const Finished mean = checkpoint(toy, {"average", "big.safetensors", "nan.safetensors", "-o", "mean.safetensors"});
  CHECK_THAT(mean.err, Contains("NaN or infinite") && Contains("w of nan.safetensors (1 of 2)"));
  CHECK_THAT(checkpoint(toy, {"diff", "nan.safetensors", "nan.safetensors"}).out,
             Contains("NaN: w (1 in A, 1 in B)") && Contains("the same: 0 weights moved, 1 are equal, 1 hold NaN"));
  CHECK_THAT(checkpoint(toy, {"diff", "big.safetensors", "nan.safetensors"}).out, Contains("1 weights moved") && Contains("1 hold NaN"));
}

TEST_CASE("checkpoint: merge-lora is what adapter export --merged writes", "[checkpoint]") {
  const Toy toy;
  REQUIRE(train(toy, "lora", {"--adapter.name=lora", "--adapter.rank=2", "--train.max_steps=2"}).status == 0);
  REQUIRE(checkpoint(toy, {"merge-lora", "runs/lora", "merged"}).status == 0);
  REQUIRE(toy.host({"adapter", "export", "runs/lora", "exported", "--merged"}).status == 0);
  CHECK(same(toy, "merged", "exported"));
  CHECK(checkpoint(toy, {"merge-lora", "merged", "twice"}).status == 2);
}
