// Weights that other programs wrote: state dicts, Hugging Face's pickled shards, distributed checkpoints (made by make_saved.py).

#include <ATen/ATen.h>

#include <algorithm>

#include "checkpoint/foreign/distributed.h"
#include "checkpoint/foreign/state_dict.h"
#include "checkpoint/huggingface/import.h"
#include "checkpoint/reader.h"
#include "core/error.h"
#include "support/temp_dir.h"
#include "support/tiny.h"

#include <catch2/catch.hpp>  // after LibTorch, whose CHECK it replaces

using namespace kf;
using Catch::Matchers::Contains;
using Catch::Matchers::Equals;

namespace {

const fs::path kSaved = fs::path(KF_SOURCE_DIR) / "tests/unit/checkpoint/saved";

at::Tensor numbers(const Shape& shape, double start, double step) {
  return (at::arange(Range::whole(shape).numel(), at::kFloat) * step + start).reshape(shape);
}

/// The model of make_saved.py.
config::Config saved_config() {
  config::Config c = test::tiny_config();
  c.model.dim = 8;
  c.model.n_heads = 2;
  c.model.n_kv_heads = 1;
  c.model.vocab_size = 11;
  c.model.ffn_hidden_dim = 12;
  return c;
}

/// Whether every weight is what make_saved.py gave it, in this type.
void check_weights(Model& model, at::ScalarType type = at::kFloat) {
  std::vector<std::pair<std::string, at::Tensor>> weights = weights_of(model);
  std::sort(weights.begin(), weights.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t k = 0; k < weights.size(); ++k) {
    CAPTURE(weights[k].first);
    const at::Tensor expected = numbers(weights[k].second.sizes().vec(), static_cast<double>(k), 1.0 / 1024);
    CHECK(at::equal(weights[k].second, expected.to(type).to(at::kFloat)));
  }
}

template <class Body>
std::string refusal(Body&& body) {
  try {
    body();
    return "";
  } catch (const Error& error) {
    CHECK(error.code() == Code::checkpoint);
    return error.what();
  }
}

void copy_folder(const fs::path& from, const fs::path& to) { fs::copy(from, to, fs::copy_options::recursive); }

}  // namespace

TEST_CASE("foreign weights: tensors of a state dict come as they were, whatever their strides, types and storages", "[checkpoint]") {
  const std::string name = GENERATE("state.pt", "protocol_5.pt", "old_format.pt");
  CAPTURE(name);
  const NamedTensors tensors = open_state_dict(kSaved / name);
  const at::Tensor base = numbers({4, 6}, 0, 0.25);
  CHECK(at::equal(tensors.get("plain"), base));
  CHECK(at::equal(tensors.get("transposed"), base.t()));
  CHECK(at::equal(tensors.get("view"), base.slice(0, 1, 3).slice(1, 0, 6, 2)));
  CHECK(tensors.get("scalar").item<float>() == 2.5F);
  CHECK(tensors.get("empty").sizes() == at::IntArrayRef{0, 7});
  CHECK(at::equal(tensors.get("shared"), tensors.get("shared_again")));
  CHECK(at::equal(tensors.get("parameter"), numbers({2, 3}, -1, 0.25)));
  for (const auto& [type, scalar] : {std::pair{"float64", at::kDouble},
                                     {"float16", at::kHalf},
                                     {"bfloat16", at::kBFloat16},
                                     {"int64", at::kLong},
                                     {"int32", at::kInt},
                                     {"int16", at::kShort},
                                     {"int8", at::kChar},
                                     {"uint8", at::kByte},
                                     {"bool", at::kBool}}) {
    CAPTURE(type);
    CHECK(tensors.ranged->kind(type).type == scalar);
    CHECK(at::equal(tensors.get(type), numbers({2, 4}, 0, 1).to(scalar)));
  }
  const at::Tensor part = at::empty({2, 2}, at::kDouble);
  tensors.ranged->read({"transposed", {6, 4}, {{1, 2}, {2, 2}}, part});
  CHECK(at::equal(part, base.t().slice(0, 1, 3).slice(1, 2, 4).to(at::kDouble)));
  CHECK_THAT(refusal([&] { tensors.get("expanded"); }), Contains("1000 numbers over a") && Contains("contiguous"));
}

TEST_CASE("foreign weights: files whose numbers are not those of their storages, and programs, are refused", "[checkpoint]") {
  CHECK_THAT(refusal([] { open_state_dict(kSaved / "negative.pt"); }), Contains("negative or conjugate view") && Contains("'negative'"));
  CHECK_THAT(refusal([] { open_state_dict(kSaved / "script.pt"); }), Contains("torch.jit.save"));
}

TEST_CASE("foreign weights: a state dict is found in what training scripts save, and loses the names of wrappers", "[checkpoint]") {
  for (const char* name : {"module.pt", "training.pt", "wrapped.pt", "lightning.ckpt"}) {
    CAPTURE(name);
    const NamedTensors tensors = open_state_dict(kSaved / name);
    CHECK_THAT(tensors.names, Equals(std::vector<std::string>{"bias", "weight"}));
    CHECK(at::equal(tensors.get("weight"), numbers({2, 3}, 0, 0.25)));
    CHECK(at::equal(tensors.get("bias"), numbers({2}, 7, 0.25)));
  }
}

TEST_CASE("foreign weights: every form loads into the model bit for bit", "[checkpoint]") {
  const auto model = test::tiny_model(saved_config());
  SECTION("a state dict") { load_weights(kSaved / "model.pt", *model), check_weights(*model); }
  SECTION("one of tensors that lie by columns") { load_weights(kSaved / "columns.pth", *model), check_weights(*model); }
  SECTION("Hugging Face's pickled shards") { load_weights(kSaved / "huggingface", *model), check_weights(*model); }
  SECTION("a distributed checkpoint of two ranks") { load_weights(kSaved / "distributed/step_10", *model), check_weights(*model); }
  SECTION("its folder of steps") { load_weights(kSaved / "distributed", *model), check_weights(*model); }
  SECTION("one with the model deeper inside") { load_weights(kSaved / "nested", *model), check_weights(*model, at::kBFloat16); }
  SECTION("one of two pipeline stages") { load_weights(kSaved / "stages", *model), check_weights(*model, at::kBFloat16); }
}

namespace {

/// The GPT-2 of make_saved.py.
config::Config gpt2_config(bool biases) {
  config::Config c = saved_config();
  c.model.n_kv_heads = 2;
  c.model.ffn_hidden_dim = 32;
  c.model.max_seq_len = 16;
  c.train.seq_len = 16;
  c.model.norm_type = "layernorm";
  c.model.norm_bias = biases;
  c.model.activation = "gelu";
  c.model.attn_bias = biases ? "all" : "none";
  c.model.mlp_bias = biases;
  c.model.pos_embedding = "learned";
  c.model.tie_embeddings = true;
  return c;
}

at::Tensor weight(Model& model, const std::string& name) {
  for (const auto& [own, tensor] : weights_of(model)) {
    if (own == name) {
      return tensor;
    }
  }
  FAIL("no weight " << name);
  return {};
}

/// By the order of the file's names: with biases, or without.
void check_gpt2(Model& model, bool biases, at::ScalarType type = at::kFloat) {
  const auto expected = [&](const Shape& shape, double start) { return numbers(shape, start, 1.0 / 1024).to(type).to(at::kFloat); };
  const at::Tensor attention = expected({24, 8}, biases ? 1 : 0);  // of layer 0
  CHECK(at::equal(weight(model, "layers.0.attention.q_proj.weight"), attention.narrow(0, 0, 8)));
  CHECK(at::equal(weight(model, "layers.0.attention.k_proj.weight"), attention.narrow(0, 8, 8)));
  CHECK(at::equal(weight(model, "layers.0.attention.v_proj.weight"), attention.narrow(0, 16, 8)));
  CHECK(at::equal(weight(model, "layers.1.mlp.down_proj.weight"), expected({8, 32}, biases ? 23 : 11)));
  CHECK(at::equal(weight(model, "norm.weight"), expected({8}, biases ? 25 : 12)));
  CHECK(at::equal(weight(model, "position_embedding.embedding.weight"), expected({16, 8}, biases ? 26 : 13)));
  CHECK(at::equal(weight(model, "token_embedding.embedding.weight").narrow(0, 0, 11), expected({11, 8}, biases ? 27 : 14)));
  if (biases) {
    CHECK(at::equal(weight(model, "layers.0.attention.v_proj.bias"), expected({24}, 0).narrow(0, 16, 8)));
    CHECK(at::equal(weight(model, "layers.1.mlp_norm.bias"), expected({8}, 18)));
  }
}

}  // namespace

TEST_CASE("foreign weights: checkpoints of nanoGPT load", "[checkpoint]") {
  const bool biases = GENERATE(false, true);
  const auto model = test::tiny_model(gpt2_config(biases));
  load_weights(kSaved / (biases ? "nanogpt_bias.pt" : "nanogpt.pt"), *model);
  check_gpt2(*model, biases);
}

TEST_CASE("foreign weights: checkpoints of llm.c load, with and without the padding of their vocabulary", "[checkpoint]") {
  const std::int64_t rows = GENERATE(11, 16);
  const bool wide = GENERATE(false, true);
  config::Config config = gpt2_config(true);
  config.model.vocab_size = rows;
  const auto model = test::tiny_model(config);
  load_weights(kSaved / (wide ? "llmc.bin" : "llmc_bf16.bin"), *model);
  check_gpt2(*model, true, wide ? at::kFloat : at::kBFloat16);
  CHECK(weight(*model, "token_embedding.embedding.weight").narrow(0, 11, rows - 11).eq(0).all().item<bool>());
}

TEST_CASE("foreign weights: GPT-2's say which settings they need", "[checkpoint]") {
  config::Config config = gpt2_config(true);
  SECTION("heads, which no shape shows") {
    config.model.n_heads = 4;
    config.model.n_kv_heads = 4;
    const auto model = test::tiny_model(config);
    for (const char* name : {"nanogpt_bias.pt", "llmc.bin"}) {
      CHECK_THAT(refusal([&] { load_weights(kSaved / name, *model); }), Contains("set model.n_heads = 2"));
    }
  }
  SECTION("anything else") {
    config.model.n_layers = 3;
    config.model.max_seq_len = 32;
    const auto model = test::tiny_model(config);
    for (const char* name : {"nanogpt_bias.pt", "llmc.bin"}) {
      CHECK_THAT(refusal([&] { load_weights(kSaved / name, *model); }),
                 Contains("layers.2.attention.q_proj.weight") && Contains("position_embedding.embedding.weight is (16, 8) in the file") &&
                     Contains("model.n_layers = 2") && Contains("model.max_seq_len = 16"));
    }
  }
  SECTION("a damaged file") {
    const test::TempDir dir;
    const auto model = test::tiny_model(config);
    const std::string file = read_file(kSaved / "llmc.bin");
    const auto changed = [&](std::size_t at, char byte) {
      std::string out = file;
      out[at] = byte;
      return out;
    };
    CHECK_THAT(refusal([&] { load_weights(dir.write("x.bin", file.substr(0, 5000)), *model); }), Contains("cut short"));
    CHECK_THAT(refusal([&] { load_weights(dir.write("y.bin", changed(4, 2)), *model); }), Contains("version 2"));
    CHECK_THAT(refusal([&] { load_weights(dir.write("z.bin", changed(19, '\x7f')), *model); }), Contains("layers, which is not between"));
  }
}

TEST_CASE("foreign weights: what does not fit the model is one error with the names", "[checkpoint]") {
  config::Config config = saved_config();
  config.model.n_layers = 3;
  config.model.ffn_hidden_dim = 16;
  const auto model = test::tiny_model(config);
  for (const char* source : {"model.pt", "distributed"}) {
    const std::string message = refusal([&] { load_weights(kSaved / source, *model); });
    CHECK_THAT(message, Contains("missing in the file (9)") && Contains("layers.2.mlp.up_proj.weight") &&
                            Contains("layers.0.mlp.gate_proj.weight is (12, 8) in the file, (16, 8) in the model"));
  }
  CHECK_THAT(refusal([&] { load_weights(kSaved / "state.pt", *model); }), Contains("unknown to the model"));
}

TEST_CASE("foreign weights: ranges of a distributed checkpoint are read over its shards", "[checkpoint]") {
  const NamedTensors tensors = open_distributed(kSaved / "distributed/step_10");
  const at::Tensor whole = tensors.get("layers.1.attention.o_proj.weight");
  const at::Tensor part = at::empty({3, 4});
  tensors.ranged->read({"layers.1.attention.o_proj.weight", {8, 8}, {{2, 2}, {3, 4}}, part});
  CHECK(at::equal(part, whole.slice(0, 2, 5).slice(1, 2, 6)));
  CHECK(std::none_of(tensors.names.begin(), tensors.names.end(), [](const std::string& name) { return name.starts_with("optimizer"); }));
}

TEST_CASE("foreign weights: a damaged distributed checkpoint is an error that names the file", "[checkpoint]") {
  const test::TempDir dir;
  copy_folder(kSaved / "distributed/step_10", dir / "x");
  const auto model = test::tiny_model(saved_config());
  SECTION("a shard is missing") {
    fs::remove(dir / "x/__1_0.distcp");
    CHECK_THAT(refusal([&] { load_weights(dir / "x", *model); }), Contains("__1_0.distcp"));
  }
  SECTION("a shard is cut short") {
    fs::resize_file(dir / "x/__1_0.distcp", 20000);
    CHECK_THAT(refusal([&] { load_weights(dir / "x", *model); }), Contains("__1_0.distcp") && Contains("cut short"));
  }
  SECTION("shards are exchanged") {
    fs::rename(dir / "x/__1_0.distcp", dir / "x/y");
    copy_folder(dir / "x/__0_0.distcp", dir / "x/__1_0.distcp");
    CHECK(!refusal([&] { load_weights(dir / "x", *model); }).empty());
  }
  SECTION("a number changed") {
    std::string file = read_file(dir / "x/__0_0.distcp");
    const std::string one("\x00\x00\x80\x3f", 4);
    const std::size_t at = file.find(one);
    REQUIRE(at != std::string::npos);
    file[at + 2] = '\x20';
    dir.write("x/__0_0.distcp", file);
    CHECK_THAT(refusal([&] { load_weights(dir / "x", *model); }), Contains("CRC-32"));
  }
  SECTION("the index changed anywhere") {
    const std::string index = read_file(dir / "x/.metadata");
    for (std::size_t at = 0; at < index.size(); at += 29) {
      std::string changed = index;
      changed[at] = static_cast<char>(changed[at] ^ 0x11);
      fs::remove(dir / "x/.metadata");
      dir.write("x/.metadata", changed);
      refusal([&] {
        const NamedTensors tensors = open_distributed(dir / "x");
        for (const std::string& name : tensors.names) {
          tensors.get(name);
        }
      });
    }
  }
}

TEST_CASE("foreign weights: a file of something else says what is needed", "[checkpoint]") {
  const test::TempDir dir;
  const auto model = test::tiny_model(saved_config());
  CHECK_THAT(refusal([&] { load_weights(dir.write("x.pt", "some text"), *model); }), Contains("torch.save or llm.c"));
  CHECK_THAT(refusal([&] { load_weights(dir.write("y.safetensors", "some text"), *model); }), Contains("safetensors file?"));
}

TEST_CASE("foreign weights: a Hugging Face folder says what of its pickled shards is missing", "[checkpoint]") {
  const test::TempDir dir;
  copy_folder(kSaved / "huggingface", dir / "x");
  const auto model = test::tiny_model(saved_config());
  fs::remove(dir / "x/pytorch_model-00002-of-00002.bin");
  CHECK_THAT(refusal([&] { load_weights(dir / "x", *model); }), Contains("pytorch_model-00002-of-00002.bin is missing"));
  fs::remove(dir / "x/pytorch_model.bin.index.json");
  CHECK_THAT(refusal([&] { load_weights(dir / "x", *model); }), Contains("model.safetensors") && Contains("pytorch_model.bin"));
}
