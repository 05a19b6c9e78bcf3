#include <ATen/ATen.h>

#include <cmath>

#include "checkpoint/foreign/gguf.h"
#include "checkpoint/gguf/architecture.h"
#include "checkpoint/gguf/gguf.h"
#include "checkpoint/reader.h"
#include "checkpoint/weights_at.h"
#include "config/huggingface/gguf.h"
#include "config/schema/schema.h"
#include "core/error.h"
#include "support/temp_dir.h"
#include "support/tiny.h"

#include <catch2/catch.hpp>  // after LibTorch, whose CHECK it replaces

using namespace kf;
using Catch::Matchers::Contains;

namespace {

std::map<std::string, at::Tensor> by_name(Model& model) {
  std::map<std::string, at::Tensor> out;
  for (auto& [name, tensor] : weights_of(model)) {
    out[name] = tensor;
  }
  return out;
}

struct Family {
  std::string architecture;
  std::function<void(config::ModelConfig&)> settings;
};

config::Config config_of(const Family& family) {
  config::Config out = test::tiny_config();
  out.model.vocab_size = 257;  // bytes
  out.model.ffn_hidden_dim = 64;
  family.settings(out.model);
  return out;
}

std::vector<Family> families() {
  return {{"llama", [](auto&) {}},
          {"llama",
           [](config::ModelConfig& m) {
             m.attn_bias = "all";
             m.tie_embeddings = true;
             m.head_dim = 24;
           }},
          {"qwen2", [](config::ModelConfig& m) { m.attn_bias = "qkv"; }},
          {"qwen3", [](config::ModelConfig& m) { m.qk_norm = true; }},
          {"gemma", [](config::ModelConfig& m) {
             m.norm_unit_offset = true;
             m.embed_scale = 0;
             m.activation = "gelu_tanh";
             m.mlp_gated = true;
             m.tie_embeddings = true;
           }}};
}

/// Weights that the type holds, so that nothing is lost on the way.
void narrow(Model& model, at::ScalarType type) {
  const at::NoGradGuard no_grad;
  for (auto& [name, tensor] : weights_of(model)) {
    tensor.copy_(tensor.to(type).to(at::kFloat));
  }
}

void write(const fs::path& path, const config::Config& config, Model& model, gguf::Type type) {
  const ByteTokenizer tokenizer;
  write_gguf(path, GgufModel{config, weights_of(model), tokenizer, {}, false, "toy"}, type);
}

/// Another model, which has the weights of the file.
std::shared_ptr<Model> read(const fs::path& path, const config::Config& config) {
  auto model = test::tiny_model(config, 2);
  load_weights(path, *model);
  return model;
}

}  // namespace

TEST_CASE("gguf: what was written is read back to the bit", "[checkpoint]") {
  const test::TempDir dir;
  const Family family = GENERATE(from_range(families()));
  const auto [type, torch] = GENERATE(
      table<gguf::Type, at::ScalarType>({{gguf::Type::f32, at::kFloat}, {gguf::Type::f16, at::kHalf}, {gguf::Type::bf16, at::kBFloat16}}));
  CAPTURE(family.architecture, gguf::name_of(type));
  const config::Config config = config_of(family);
  const auto model = test::tiny_model(config, 1);
  narrow(*model, torch);
  write(dir / "m.gguf", config, *model, type);
  CHECK(gguf::OpenFile(dir / "m.gguf").header().architecture() == family.architecture);
  const auto back = read(dir / "m.gguf", config);
  const auto expected = by_name(*model), found = by_name(*back);
  REQUIRE(expected.size() == found.size());
  for (const auto& [name, tensor] : expected) {
    INFO(name);
    // Gemma's norms are written as 1 + weight.
    CHECK((family.architecture == "gemma" ? at::allclose(found.at(name), tensor, 0, 0x1p-23) : at::equal(found.at(name), tensor)));
  }
  // What was read and written again is the same file.
  write(dir / "again.gguf", config, *back, type);
  CHECK(read_file(dir / "again.gguf") == read_file(dir / "m.gguf"));
}

TEST_CASE("gguf: Q8_0 is read within half a step of each block", "[checkpoint]") {
  const test::TempDir dir;
  const config::Config config = config_of(families()[0]);
  const auto model = test::tiny_model(config, 1);
  write(dir / "m.gguf", config, *model, gguf::Type::q8_0);
  const auto expected = by_name(*model), found = by_name(*read(dir / "m.gguf", config));
  for (const auto& [name, tensor] : expected) {
    INFO(name);
    if (tensor.dim() < 2) {
      CHECK(at::equal(found.at(name), tensor));
      continue;
    }
    // Blocks lie along rows, which permuted heads keep whole. The step is the largest number / 127, itself in fp16: 2^-11 of 127 steps.
    const at::Tensor blocks = tensor.reshape({-1, gguf::kBlock}), other = found.at(name).reshape({-1, gguf::kBlock});
    const at::Tensor step = blocks.abs().amax(1, true) / 127;
    CHECK(((other - blocks).abs() <= step * (0.5 + 127 * 0x1p-11 + 1e-3)).all().item<bool>());
    CHECK(!at::equal(other, blocks));
  }
}

TEST_CASE("gguf: a range is read as of the whole, also of permuted rows and of blocks", "[checkpoint]") {
  const test::TempDir dir;
  const config::Config config = config_of(families()[0]);
  const auto model = test::tiny_model(config, 1);
  write(dir / "m.gguf", config, *model, GENERATE(gguf::Type::f32, gguf::Type::q8_0));
  const gguf::OpenFile file(dir / "m.gguf");
  const NamedTensors tensors = file.as_ours(file.tensors());
  for (const std::string& name : tensors.names) {
    INFO(name);
    const at::Tensor whole = tensors.get(name);
    Range range = Range::whole(whole.sizes().vec());
    for (std::size_t dim = 0; dim < range.size.size(); ++dim) {
      range.begin[dim] = range.size[dim] / 3;
      range.size[dim] = range.size[dim] / 2;
    }
    const at::Tensor part = at::full(range.size, -1.0);
    tensors.ranged->read({name, whole.sizes().vec(), range, part});
    CHECK(at::equal(part, range.of(whole)));
  }
  CHECK_THROWS_WITH(tensors.ranged->read({"norm.weight", {33}, Range::whole({33}), at::empty({33})}), Contains("another shape"));
}

TEST_CASE("gguf: the header's settings are those of the model that was written", "[checkpoint]") {
  const test::TempDir dir;
  const Family family = GENERATE(from_range(families()));
  CAPTURE(family.architecture);
  const config::Config config = config_of(family);
  write(dir / "m.gguf", config, *test::tiny_model(config, 1), gguf::Type::f16);
  std::vector<std::string> problems;
  const config::Table model = config::model_of_gguf(dir / "m.gguf", problems);
  CHECK(join(problems, "\n").empty());
  for (const auto& [key, value] : model) {
    const config::Row* const row = config::find_row("model." + key);
    INFO(key << " = " << config::to_text(value));
    REQUIRE(row != nullptr);
    const config::Node ours = row->get(config);
    CHECK((ours.is_null() || ours == value));  // derived ones are unset here
  }
}

TEST_CASE("gguf: a model with other heads, and names that llama.cpp does not have, are refused", "[checkpoint]") {
  const test::TempDir dir;
  config::Config config = config_of(families()[0]);
  write(dir / "m.gguf", config, *test::tiny_model(config, 1), gguf::Type::f32);
  config.model.n_heads = 8;
  config.model.head_dim = 4;
  config.model.n_kv_heads = 4;
  CHECK_THROWS_WITH(read(dir / "m.gguf", config), Contains("has 4 heads, and the job's has 8") && Contains("set model.n_heads = 4"));
  gguf::File other;
  other.add("general.architecture", "llama");
  other.add("llama.attention.head_count", std::uint32_t{4});
  other.add("llama.attention.head_count_kv", std::uint32_t{2});
  other.add_tensor("blk.0.ffn_gate_inp.weight", {8, 8}, gguf::Type::f32, [] { return at::zeros({8, 8}); });
  other.write(dir / "moe.gguf");
  CHECK_THROWS_WITH(read(dir / "moe.gguf", config_of(families()[0])), Contains("blk.0.ffn_gate_inp.weight"));
  gguf::File phi;
  phi.add("general.architecture", "phi3");
  phi.write(dir / "phi.gguf");
  CHECK_THROWS_WITH(read(dir / "phi.gguf", config_of(families()[0])), Contains("general.architecture = 'phi3' is not understood"));
}

TEST_CASE("gguf: every byte of a header may be wrong, and reading gives an error or tensors", "[checkpoint]") {
  const test::TempDir dir;
  const config::Config config = config_of(families()[0]);
  write(dir / "m.gguf", config, *test::tiny_model(config, 1), gguf::Type::f16);
  const std::string bytes = read_file(dir / "m.gguf");
  const std::size_t header = gguf::OpenFile(dir / "m.gguf").header().tensors.front().begin;
  std::size_t refused = 0;
  for (std::size_t at = 0; at < header; at += at < 400 ? 1 : 7) {
    std::string other = bytes;
    other[at] = static_cast<char>(other[at] ^ (at % 2 == 0 ? 0xff : 0x80));
    try {
      gguf::read_header(std::as_bytes(std::span(other)), "x.gguf");
    } catch (const Error& error) {
      CHECK(error.code() == Code::checkpoint);
      ++refused;
    }
  }
  CHECK(refused > 100);
  for (const std::size_t size : {std::size_t{0}, std::size_t{3}, header / 2, header, bytes.size() - 33}) {
    CHECK_THROWS_AS(gguf::read_header(std::as_bytes(std::span(bytes.data(), size)), "x.gguf"), Error);
  }
}
