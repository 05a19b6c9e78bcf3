#include <ATen/ATen.h>

#include <cmath>
#include <cstring>

#include "checkpoint/gguf/architecture.h"
#include "checkpoint/gguf/file.h"
#include "checkpoint/gguf/vocabulary.h"
#include "core/error.h"
#include "support/temp_dir.h"
#include "support/tiny.h"

#include <catch2/catch.hpp>  // after LibTorch, whose CHECK it replaces

using namespace kf;
using Catch::Matchers::Contains;

TEST_CASE("gguf: Q8_0 keeps 32 numbers as integers of up to 127 and one scale", "[checkpoint]") {
  at::Tensor numbers = at::arange(-32, 32, at::kFloat).reshape({1, 64});
  numbers[0][0] = -63.5;  // of the first block: the scale is 0.5
  const std::string bytes = gguf::encoded(gguf::Type::q8_0, numbers, "x");
  REQUIRE(bytes.size() == 2 * 34);
  CHECK(bytes.size() == gguf::bytes_of(gguf::Type::q8_0, {1, 64}));
  at::Half scale;
  std::memcpy(&scale, bytes.data(), 2);
  CHECK(static_cast<float>(scale) == 0.5F);
  CHECK(static_cast<std::int8_t>(bytes[2]) == -127);
  CHECK(static_cast<std::int8_t>(bytes[3]) == -62);
  CHECK(static_cast<std::int8_t>(bytes[34 + 2]) == 0);
  CHECK(static_cast<std::int8_t>(bytes[34 + 33]) == 127);
  CHECK(gguf::encoded(gguf::Type::q8_0, at::zeros({32}), "x") == std::string(34, '\0'));
}

TEST_CASE("gguf: numbers past the end of a type are refused, and what is infinite stays so", "[checkpoint]") {
  using gguf::Type;
  const at::Tensor large = at::full({32}, 1e5), larger = at::full({32}, 1e7);
  CHECK_THROWS_WITH(gguf::encoded(Type::f16, large, "w"), Contains("'w'") && Contains("65504") && Contains("use bfloat16 (or float32)"));
  CHECK_THROWS_WITH(gguf::encoded(Type::q8_0, larger, "w"), Contains("'w'") && Contains("use bfloat16 (or float32)"));
  CHECK_THROWS_WITH(gguf::encoded(Type::q8_0, at::full({32}, std::nan("")), "w"), Contains("not finite"));
  CHECK_THROWS_WITH(gguf::encoded(Type::bf16, at::full({2}, 3.4e38), "w"), Contains("use float32"));
  CHECK_NOTHROW(gguf::encoded(Type::bf16, large, "w"));
  CHECK_NOTHROW(gguf::encoded(Type::q8_0, large, "w"));
  CHECK_NOTHROW(gguf::encoded(Type::f16, at::full({2}, HUGE_VAL), "w"));
}

TEST_CASE("gguf: a file is a header of keys and tensors, then numbers at multiples of 32", "[checkpoint]") {
  const test::TempDir dir;
  gguf::File file;
  file.add("general.architecture", "llama");
  file.add_tensor("a", {3}, gguf::Type::f32, [] { return at::tensor({1.0F, 2.0F, 3.0F}); });
  file.add_tensor("b", {1, 2}, gguf::Type::f16, [] { return at::tensor({0.5F, -0.5F}).reshape({1, 2}); });
  file.write(dir / "x.gguf");
  const std::string bytes = read_file(dir / "x.gguf");
  CHECK(bytes.substr(0, 8) == std::string("GGUF\3\0\0\0", 8));
  REQUIRE(bytes.size() % 32 == 0);
  const std::size_t data = bytes.size() - 64;
  float third = 0;
  std::memcpy(&third, bytes.data() + data + 8, 4);
  CHECK(third == 3.0F);
  CHECK(bytes.substr(data + 32, 4) == std::string("\x00\x38\x00\xb8", 4));
  gguf::File wrong;
  wrong.add_tensor("a", {4}, gguf::Type::f32, [] { return at::zeros({3}); });
  CHECK_THROWS_WITH(wrong.write(dir / "y.gguf"), Contains("another shape"));
  CHECK(!fs::exists(dir / "y.gguf"));
}

TEST_CASE("gguf: tokenizers that llama.cpp does not have are refused", "[checkpoint]") {
  const fs::path files = fs::path(KF_SOURCE_DIR) / "tests/unit/data/tokenizer/files";
  const auto refusal = [&](const std::string& name) {
    try {
      gguf::read_vocabulary(files / name, ByteTokenizer(), 100'000);
      return std::string();
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  CHECK_THAT(refusal("spm_unigram_nmt_nfkc"), Contains("it is no BPE that spells unknown characters by bytes"));
  CHECK_THAT(refusal("tiktoken_llama"), Contains("tokenizer.model"));
  CHECK(refusal("spm_bpe_bytes").empty());
}

TEST_CASE("gguf: llama's queries and keys are paired by neighbours, other models' by halves", "[checkpoint]") {
  config::Config config = test::tiny_config();
  const auto heads_of = [&](const std::string& ours) {
    for (const gguf::TensorRule& rule : gguf::architecture_of(config).tensors) {
      if (rule.ours == ours) {
        return rule.paired_heads;
      }
    }
    return std::int64_t{-1};
  };
  CHECK(heads_of("layers.0.attention.q_proj.weight") == 4);
  CHECK(heads_of("layers.1.attention.k_proj.weight") == 2);
  CHECK(heads_of("layers.1.attention.v_proj.weight") == 0);
  config.model.rope_layout = "interleaved";
  CHECK(heads_of("layers.0.attention.q_proj.weight") == 0);
  config.model.qk_norm = true;
  CHECK_THROWS_WITH(gguf::architecture_of(config), Contains("model.rope_layout = \"interleaved\": qwen3 has \"half\""));
  config.model.rope_layout = "half";
  CHECK(heads_of("layers.0.attention.q_proj.weight") == 0);
}
