// Headers of GGUF files: what they say of a model, and everything that is wrong with them.

#include "config/tree/gguf.h"

#include <cmath>
#include <cstring>

#include "config/huggingface/gguf.h"
#include "config/load/load.h"
#include "core/error.h"
#include "job.h"
#include "support/temp_dir.h"

namespace kf::test {
namespace {

using Catch::Matchers::Contains;

constexpr std::uint32_t kU8 = 0, kU32 = 4, kF32 = 6, kText = 8, kList = 9, kU64 = 10;

/// A file, byte by byte.
class Bytes {
 public:
  template <class Number>
  Bytes& put(Number number) {
    char bytes[sizeof number];
    std::memcpy(bytes, &number, sizeof number);
    data.append(bytes, sizeof bytes);
    return *this;
  }
  Bytes& text(const std::string& text) {
    put<std::uint64_t>(text.size());
    data += text;
    return *this;
  }
  Bytes& key(const std::string& name, std::uint32_t kind) { return text(name).put(kind); }

  std::string data;
};

Bytes begun(std::uint64_t tensors, std::uint64_t keys, std::uint32_t version = 3) {
  Bytes out;
  out.data = "GGUF";
  return out.put(version).put(tensors).put(keys);
}

/// A tensor's entry: its dims as the file has them, the fastest one first.
Bytes& tensor(Bytes& out, const std::string& name, const std::vector<std::uint64_t>& dims, std::uint32_t type, std::uint64_t offset) {
  out.text(name).put(static_cast<std::uint32_t>(dims.size()));
  for (const std::uint64_t dim : dims) {
    out.put(dim);
  }
  return out.put(type).put(offset);
}

/// The header and so many bytes of numbers.
std::string whole(Bytes header, std::size_t numbers) {
  header.data.resize((header.data.size() + 31) / 32 * 32 + numbers);
  return header.data;
}

gguf::Header read(const std::string& bytes) { return gguf::read_header(std::as_bytes(std::span(bytes)), "x.gguf"); }

std::string fault(const std::string& bytes) {
  try {
    read(bytes);
    return "";
  } catch (const Error& error) {
    CHECK(error.code() == Code::checkpoint);
    return error.what();
  }
}

/// With its one tensor wrong in some way.
std::string one(const std::vector<std::uint64_t>& dims, std::uint32_t type, std::uint64_t offset, std::size_t numbers = 64) {
  Bytes out = begun(1, 0);
  tensor(out, "w", dims, type, offset);
  return whole(out, numbers);
}

/// The toy model of these tests: dim 8, one layer, two heads, eleven words.
struct ModelFile {
  std::string architecture = "llama";
  std::vector<std::pair<std::string, double>> reals{{"attention.layer_norm_rms_epsilon", 1e-5}, {"rope.freq_base", 500000}};
  std::vector<std::pair<std::string, std::uint32_t>> integers{{"embedding_length", 8},     {"block_count", 1},
                                                              {"feed_forward_length", 12}, {"context_length", 64},
                                                              {"attention.head_count", 2}, {"attention.head_count_kv", 1}};
  std::vector<std::pair<std::string, std::string>> texts;
  std::vector<std::string> more;  // vectors of the width, beside the embedding
  std::vector<float> divisors;    // rope_freqs.weight

  std::string bytes() const {
    Bytes out = begun(1 + more.size() + (divisors.empty() ? 0 : 1), 1 + reals.size() + integers.size() + texts.size());
    out.key("general.architecture", kText).text(architecture);
    for (const auto& [name, value] : reals) {
      out.key(architecture + "." + name, kF32).put(static_cast<float>(value));
    }
    for (const auto& [name, value] : integers) {
      out.key(architecture + "." + name, kU32).put(value);
    }
    for (const auto& [name, value] : texts) {
      out.key(architecture + "." + name, kText).text(value);
    }
    std::uint64_t offset = 0;
    const auto place = [&](const std::string& name, const std::vector<std::uint64_t>& dims, std::uint64_t size) {
      tensor(out, name, dims, 0, offset);
      offset += (size + 31) / 32 * 32;
    };
    place("token_embd.weight", {8, 11}, 8 * 11 * 4);
    for (const std::string& name : more) {
      place(name, {8}, 8 * 4);
    }
    const std::uint64_t last = offset;
    if (!divisors.empty()) {
      place("rope_freqs.weight", {divisors.size()}, divisors.size() * 4);
    }
    std::string all = whole(out, offset);
    if (!divisors.empty()) {
      std::memcpy(all.data() + all.size() - offset + last, divisors.data(), divisors.size() * 4);
    }
    return all;
  }
};

config::Table settings(const ModelFile& file, std::vector<std::string>& problems) {
  const std::string bytes = file.bytes();
  return config::model_of_gguf(read(bytes), std::as_bytes(std::span(bytes)), "x.gguf", problems);
}

std::string text_of(const config::Table& model, const char* key) {
  const config::Node* const node = model.find(key);
  return node != nullptr ? config::to_text(*node) : "";
}

std::string problem_of(const ModelFile& file) {
  std::vector<std::string> problems;
  settings(file, problems);
  return join(problems, "\n");
}

}  // namespace

TEST_CASE("gguf: values of every kind are read, and long lists are passed over", "[gguf]") {
  Bytes out = begun(1, 4);
  out.key("a", kU8).put<std::uint8_t>(7);
  out.key("b", kF32).put(1e-5F);
  out.key("c", kU64).put<std::uint64_t>(UINT64_MAX);
  out.key("d", kList).put(kText).put<std::uint64_t>(2000);
  for (int i = 0; i < 2000; ++i) {
    out.text("word");
  }
  tensor(out, "w", {4, 2}, 30, 0);
  const gguf::Header header = read(whole(out, 32));
  CHECK(*header.keys.find("a") == config::Node(std::int64_t{7}));
  CHECK(*header.keys.find("b") == config::Node(1e-5));  // the double that people mean
  CHECK(*header.keys.find("c") == config::Node(18446744073709551616.0));
  CHECK(header.keys.find("d")->is_null());
  REQUIRE(header.tensors.size() == 1);
  CHECK(header.tensors[0].shape == std::vector<std::int64_t>{2, 4});
  CHECK(header.tensors[0].type == gguf::Type::bf16);
  CHECK(header.tensors[0].bytes == 16);
  CHECK(header.version == 3);
}

TEST_CASE("gguf: lengths, counts, shapes and places are compared with what the file has", "[gguf]") {
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 63;
  CHECK_THAT(fault("GGUF"), Contains("cut short"));
  CHECK_THAT(fault("GGML" + std::string(60, '\0')), Contains("is no GGUF file"));
  CHECK_THAT(fault(begun(0, kHuge).data), Contains("9223372036854775808 keys"));
  CHECK_THAT(fault(begun(kHuge, 0).data), Contains("9223372036854775808 tensors"));
  CHECK_THAT(fault(begun(0, 1).put(kHuge).data), Contains("the name of a key") && Contains("9223372036854775808 bytes long"));
  CHECK_THAT(fault(begun(0, 1).key("k", kText).put(UINT64_MAX).data), Contains("a text at byte"));
  CHECK_THAT(fault(begun(0, 1).key("k", kList).put(kU8).put(kHuge).data), Contains("the list 'k' has 9223372036854775808 values"));
  CHECK_THAT(fault(begun(0, 1).key("k", 13).data), Contains("'k' is of kind 13"));
  CHECK_THAT(fault(begun(0, 1).key("k", 7).put<std::uint8_t>(2).data), Contains("0 or 1"));
  CHECK_THAT(fault(begun(0, 2).key("k", kU8).put<std::uint8_t>(1).key("k", kU8).put<std::uint8_t>(1).data),
             Contains("'k' stands in it twice"));
  CHECK_THAT(fault(one({kHuge}, 0, 0)), Contains("a dim of 9223372036854775808"));
  CHECK_THAT(fault(one({std::uint64_t{1} << 33, std::uint64_t{1} << 33}, 0, 0)), Contains("which no file holds"));
  CHECK_THAT(fault(one({4, 0}, 0, 0)), Contains("a dim of 0"));
  CHECK_THAT(fault(one({}, 0, 0)), Contains("has 0 dims"));
  CHECK_THAT(fault(one({1, 1, 1, 1, 1}, 0, 0)), Contains("has 5 dims"));
  CHECK_THAT(fault(one({4}, 0, 16)), Contains("no multiple of 32"));
  CHECK_THAT(fault(one({4}, 0, kHuge)), Contains("is said to have 16 bytes at 9223372036854775808"));
  CHECK_THAT(fault(one({17}, 0, 0)), Contains("cut short or damaged"));
  CHECK_THAT(fault(one({4}, 0, 0, 96)), Contains("header tells of"));
  CHECK_THAT(fault(one({33}, 8, 0)), Contains("no blocks of 32"));
  Bytes out = begun(2, 0);
  tensor(out, "v", {4}, 0, 0);
  tensor(out, "w", {4}, 0, 0);
  CHECK_THAT(fault(whole(out, 64)), Contains("'v' and 'w' overlap"));
  Bytes twice = begun(2, 0);
  tensor(twice, "w", {4}, 0, 0);
  tensor(twice, "w", {4}, 0, 32);
  CHECK_THAT(fault(whole(twice, 64)), Contains("two tensors are named 'w'"));
  CHECK(fault(one({4}, 0, 0, 32)).empty());
}

TEST_CASE("gguf: lists in lists have an end", "[gguf]") {
  const auto nested = [](int depth) {
    Bytes out = begun(0, 1);
    out.key("k", kList);
    for (int i = 1; i < depth; ++i) {
      out.put(kList).put<std::uint64_t>(1);
    }
    return fault(out.put(kU8).put<std::uint64_t>(1).put<std::uint8_t>(1).data);
  };
  CHECK(nested(4).empty());
  CHECK_THAT(nested(5), Contains("lists in lists more than 4 deep"));
  CHECK_THAT(nested(100'000), Contains("lists in lists"));
}

TEST_CASE("gguf: what is not read is named: versions, types, byte order, parts", "[gguf]") {
  CHECK(fault(begun(0, 0, 2).data).empty());
  CHECK_THAT(fault(begun(0, 0, 1).data), Contains("of version 1") && Contains("2 and 3 are read"));
  CHECK_THAT(fault(begun(0, 0, 4).data), Contains("of version 4") && Contains("a newer kf-host"));
  CHECK_THAT(fault(begun(0, 0, 0x03000000).data), Contains("big-endian"));
  CHECK_THAT(fault(one({256}, 12, 0)), Contains("the tensor 'w' is of type Q4_K") && Contains("F32, F16, BF16 and Q8_0"));
  CHECK_THAT(fault(one({256}, 999, 0)), Contains("of type 999"));
  CHECK_THAT(fault(begun(0, 1).key("split.count", kU32).put<std::uint32_t>(3).data), Contains("one of several files"));
  CHECK_THAT(fault(begun(0, 1).key("general.alignment", kU32).put<std::uint32_t>(0).data), Contains("general.alignment = 0"));
}

TEST_CASE("gguf: a header is the settings of its model", "[gguf]") {
  std::vector<std::string> problems;
  ModelFile file;
  config::Table model = settings(file, problems);
  CHECK(problems.empty());
  CHECK(text_of(model, "dim") == "8");
  CHECK(text_of(model, "n_kv_heads") == "1");
  CHECK(text_of(model, "vocab_size") == "11");
  CHECK(text_of(model, "norm_eps") == "1e-05");
  CHECK(text_of(model, "tie_embeddings") == "true");
  CHECK(text_of(model, "attn_bias").empty());
  file.more = {"output.weight", "blk.0.attn_q.bias", "blk.0.attn_output.bias"};
  model = settings(file, problems);
  CHECK(text_of(model, "tie_embeddings") == "false");
  CHECK(text_of(model, "attn_bias") == "'all'");
  file.architecture = "qwen2";
  file.more.pop_back();
  CHECK(text_of(settings(file, problems), "attn_bias") == "'qkv'");
  file.architecture = "qwen3";
  CHECK(text_of(settings(file, problems), "qk_norm") == "true");
  file.architecture = "gemma";
  model = settings(file, problems);
  CHECK(text_of(model, "norm_unit_offset") == "true");
  CHECK(text_of(model, "activation") == "'gelu_tanh'");
  CHECK(problems.empty());
}

TEST_CASE("gguf: the scaling of Llama 3 is found in what it divides frequencies by", "[gguf]") {
  const std::int64_t length = GENERATE(8192, 32, 3000);
  const double factor = GENERATE(8.0, 32.0);
  CAPTURE(length, factor);
  ModelFile file;
  file.integers.emplace_back("attention.key_length", 64);
  file.integers.emplace_back("attention.value_length", 64);
  for (int i = 0; i < 32; ++i) {
    const double turns = static_cast<double>(length) * std::pow(500000.0, -i / 32.0) / (2 * std::acos(-1.0));
    const double kept = std::clamp((turns - 1) / 3, 0.0, 1.0);
    file.divisors.push_back(static_cast<float>(1 / ((1 - kept) / factor + kept)));
  }
  std::vector<std::string> problems;
  const config::Table model = settings(file, problems);
  CHECK(problems.empty());
  CHECK(text_of(model, "rope_scaling") == "'llama3'");
  CHECK(text_of(model, "rope_orig_len") == std::to_string(length));
  CHECK(text_of(model, "rope_factor") == config::to_text(config::Node(factor)));
  file.divisors[5] *= 1.01F;
  CHECK_THAT(problem_of(file), Contains("rope_freqs.weight divides the rotary frequencies, and not as Llama 3"));
}

TEST_CASE("gguf: a factor of the positions is linear where no type is said", "[gguf]") {
  ModelFile file;
  std::vector<std::string> problems;
  file.reals.emplace_back("rope.scaling.factor", 4);
  if (GENERATE(false, true)) {
    file.texts = {{"rope.scaling.type", "linear"}};
  }
  const config::Table model = settings(file, problems);
  CHECK(problems.empty());
  CHECK(text_of(model, "rope_scaling") == "'linear'");
  CHECK(text_of(model, "rope_factor") == config::to_text(config::Node(4.0)));
  file.texts = {{"rope.scaling.type", "none"}};
  CHECK(settings(file, problems).find("rope_scaling") == nullptr);
}

TEST_CASE("gguf: settings that are not understood are named", "[gguf]") {
  ModelFile file;
  file.architecture = "phi3";
  CHECK_THAT(problem_of(file), Contains("general.architecture = 'phi3' is not understood; have: gemma, llama, qwen2, qwen3"));
  file.architecture = "llama";
  file.integers.emplace_back("expert_count", 8);
  CHECK_THAT(problem_of(file), Contains("expert_count = 8"));
  file.integers.back() = {"attention.sliding_window", 4096};
  CHECK_THAT(problem_of(file), Contains("attention.sliding_window = 4096 is not understood"));
  file.integers.back() = {"rope.dimension_count", 2};
  CHECK_THAT(problem_of(file), Contains("rope.dimension_count = 2"));
  file.integers.back() = {"vocab_size", 12};
  CHECK_THAT(problem_of(file), Contains("token_embd.weight has 11 rows"));
  file.integers.erase(file.integers.begin());
  CHECK_THAT(problem_of(file), Contains("embedding_length is missing"));
  ModelFile stretched;
  stretched.texts = {{"rope.scaling.type", "yarn"}};
  CHECK_THAT(problem_of(stretched), Contains("rope.scaling.type = 'yarn'"));
}

TEST_CASE("gguf: a file in checkpoint.init_from or model.preset gives a job its model", "[gguf]") {
  const TempDir dir;
  dir.write("m.gguf", ModelFile().bytes());
  const std::string key = GENERATE("--checkpoint.init_from=", "--model.preset=");
  const std::string named = key + (dir / "m.gguf").string();
  const config::Config config = good(load_cli({named, "--train.seq_len=16"}));
  CHECK(config.model.dim == 8);
  CHECK(config.model.rope_theta == 500000);
  const config::Loaded other = load_cli({named, "--train.seq_len=16", "--model.rope_theta=1e4"});
  CHECK_THAT(join(other.report.warnings, "\n"), Contains("the job's own keys win"));
  if (key == "--checkpoint.init_from=") {
    const config::Loaded neighbours = load_cli({named, "--train.seq_len=16", "--model.rope_layout=interleaved"});
    CHECK_THAT(config::to_text(neighbours.report), Contains("are read for \"half\""));
  }
  dir.write("m.gguf", one({256}, 12, 0));
  CHECK_THAT(config::to_text(load_cli({named, "--train.seq_len=16"}).report), Contains("is of type Q4_K"));
}

}  // namespace kf::test
