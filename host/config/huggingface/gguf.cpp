#include "config/huggingface/gguf.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <optional>

#include "config/huggingface/common.h"
#include "config/huggingface/reader.h"
#include "core/text.h"

namespace kf::config {
namespace {

using gguf::Header;
using gguf::TensorPlace;
using huggingface::Reader;

/// The entries under "llama.", without that.
Table keys_of(const Header& header, const std::string& architecture) {
  Table out;
  const std::string prefix = architecture + ".";
  for (const auto& [key, value] : header.keys) {
    if (key.starts_with(prefix)) {
      out[key.substr(prefix.size())] = value;
    }
  }
  return out;
}

/// Rows of the embedding, which older files do not say otherwise.
void take_vocabulary(Reader& c, const Header& header) {
  const TensorPlace* const embedding = header.find("token_embd.weight");
  const std::int64_t rows = embedding != nullptr && embedding->shape.size() == 2 ? embedding->shape[0] : 0;
  const std::int64_t said = c.integer("vocab_size", rows);
  if (rows == 0) {
    c.problem("it has no matrix token_embd.weight");
  } else if (said != rows) {
    c.problem(format("vocab_size = {}, and token_embd.weight has {} rows", said, rows));
  }
  c.set("vocab_size", rows);
}

/// Heads and their width, which is returned. All of a head is rotated.
std::int64_t take_heads(Reader& c, std::int64_t dim) {
  const std::int64_t heads = c.integer("attention.head_count");
  c.set("n_heads", heads);
  c.set("n_kv_heads", c.integer("attention.head_count_kv", heads));
  const std::int64_t usual = huggingface::head_width(dim, heads);
  const std::int64_t width = c.integer("attention.key_length", usual);
  if (width != usual) {
    c.set("head_dim", width);
  }
  for (const char* key : {"attention.value_length", "rope.dimension_count"}) {
    if (const std::int64_t other = c.integer(key, width); other != width) {
      c.problem(format("{} = {} is not understood; only {}, the width of a head, is", key, other, width));
    }
  }
  return width;
}

/// Where the projections of queries, keys and values, and of their output, have biases.
void take_biases(Reader& c, const Header& header) {
  const bool inner = header.find("blk.0.attn_q.bias") != nullptr, outer = header.find("blk.0.attn_output.bias") != nullptr;
  if (inner || outer) {
    c.set("attn_bias", std::string(outer ? "all" : "qkv"));
  }
}

/// The scaling of Llama 3 by what it divides the frequencies by, which is all that a file has of it. Its usual low_freq_factor 1 and
/// high_freq_factor 4 are taken as given; the length of before is what the divisors between 1 and the largest follow.
class Llama3Scaling {
 public:
  Llama3Scaling(std::vector<float> divisors, double theta) : divisors_(std::move(divisors)), theta_(theta) {}

  double factor() const { return *std::max_element(divisors_.begin(), divisors_.end()); }

  /// Nothing where the divisors are of another kind.
  std::optional<std::int64_t> length() const {
    std::vector<std::int64_t> tried;
    for (std::size_t i = 0; i < divisors_.size(); ++i) {
      if (const double d = divisors_[i]; d > 1 && d < factor()) {
        const double kept = (1 / d - 1 / factor()) / (1 - 1 / factor());
        const double length = (kLow + kept * (kHigh - kLow)) * 2 * std::numbers::pi / frequency(i);
        tried.push_back(length < 1e15 ? std::llround(length) : 0);
        break;
      }
    }
    for (std::int64_t length = 8192; length >= 1; length /= 2) {
      tried.push_back(length);
    }
    for (std::int64_t length = 16384; length <= std::int64_t{1} << 30; length *= 2) {
      tried.push_back(length);
    }
    const auto fits = [&](std::int64_t length) { return length > 0 && follows(length); };
    const auto found = std::find_if(tried.begin(), tried.end(), fits);
    return found != tried.end() ? std::optional(*found) : std::nullopt;
  }

 private:
  static constexpr double kLow = 1, kHigh = 4, kNear = 1e-5;

  double frequency(std::size_t i) const { return std::pow(theta_, -static_cast<double>(i) / static_cast<double>(divisors_.size())); }

  bool follows(std::int64_t length) const {
    for (std::size_t i = 0; i < divisors_.size(); ++i) {
      const double turns = static_cast<double>(length) * frequency(i) / (2 * std::numbers::pi);
      const double kept = std::clamp((turns - kLow) / (kHigh - kLow), 0.0, 1.0);
      const double divisor = 1 / ((1 - kept) / factor() + kept);
      if (!(std::abs(divisor - divisors_[i]) <= kNear * divisor)) {
        return false;
      }
    }
    return true;
  }

  std::vector<float> divisors_;
  double theta_;
};

void take_divisors(Reader& c, const TensorPlace& place, std::span<const std::byte> bytes, double theta, std::int64_t width) {
  if (place.type != gguf::Type::f32 || place.shape != std::vector<std::int64_t>{width / 2}) {
    c.problem(format("rope_freqs.weight is no list of {} numbers in F32, one for each frequency of a head", width / 2));
    return;
  }
  std::vector<float> divisors(static_cast<std::size_t>(place.shape[0]));
  std::memcpy(divisors.data(), bytes.data() + place.begin, place.bytes);
  if (std::all_of(divisors.begin(), divisors.end(), [](float x) { return x == 1; })) {
    return;
  }
  const bool sound = theta > 0 && std::all_of(divisors.begin(), divisors.end(), [](float x) { return x >= 1 && x < 1e6F; });
  const Llama3Scaling scaling(std::move(divisors), theta);
  const std::optional<std::int64_t> length = sound ? scaling.length() : std::nullopt;
  if (!length) {
    c.problem(
        "rope_freqs.weight divides the rotary frequencies, and not as Llama 3 does with low_freq_factor 1 and high_freq_factor 4; set "
        "model.preset, model.rope_scaling and the keys beside it by hand");
    return;
  }
  c.set("rope_scaling", std::string("llama3"));
  c.set("rope_factor", scaling.factor());
  c.set("rope_orig_len", *length);
}

void take_rotation(Reader& c, const Header& header, std::span<const std::byte> bytes, std::int64_t width) {
  const double theta = c.real("rope.freq_base", 10000);
  c.set("rope_theta", theta);
  const std::string type = c.text("rope.scaling.type", "linear");  // what a factor means where nothing is said
  const double factor = c.real("rope.scaling.factor", 1);
  c.only("rope.scaling.attn_factor", Node(1.0));
  c.ignore({"rope.scaling.finetuned", "rope.scaling.original_context_length"});  // the second is read for yarn alone
  if (type == "linear" && factor != 1) {
    c.set("rope_scaling", std::string("linear"));
    c.set("rope_factor", factor);
  } else if (type != "none" && type != "linear") {
    c.problem(format("rope.scaling.type = '{}' is not understood; none, linear and rope_freqs.weight are", type));
  }
  if (const TensorPlace* const divisors = header.find("rope_freqs.weight")) {
    type == "none" || factor == 1 ? take_divisors(c, *divisors, bytes, theta, width)
                                  : c.problem("rope_freqs.weight and rope.scaling.type stretch the positions both");
  }
}

void take_model(Reader& c, const std::string& architecture, const Header& header, std::span<const std::byte> bytes) {
  const std::int64_t dim = c.integer("embedding_length");
  c.set("dim", dim);
  c.set("n_layers", c.integer("block_count"));
  c.set("ffn_hidden_dim", c.integer("feed_forward_length"));
  c.set("max_seq_len", c.integer("context_length"));
  huggingface::take_rms_norm(c, "attention.layer_norm_rms_epsilon", 1e-6);
  c.set("tie_embeddings", header.find("output.weight") == nullptr);
  take_vocabulary(c, header);
  const std::int64_t width = take_heads(c, dim);
  take_biases(c, header);
  take_rotation(c, header, bytes, width);
  c.only("expert_count", Node(std::int64_t{0}));
  c.only("expert_used_count", Node(std::int64_t{0}));
  c.only("attention.causal", Node(true));
  if (architecture == "qwen3") {
    c.set("qk_norm", true);
  } else if (architecture == "gemma") {
    c.set("norm_unit_offset", true);
    c.set("embed_scale", 0.0);  // sqrt(dim)
    c.set("activation", std::string("gelu_tanh"));
    c.set("mlp_gated", true);
  }
}

}  // namespace

Table model_of_gguf(const fs::path& file, std::vector<std::string>& problems) {
  const MappedFile mapped(file);
  return model_of_gguf(gguf::read_header(mapped.bytes(), file), mapped.bytes(), file, problems);
}

Table model_of_gguf(const Header& header, std::span<const std::byte> bytes, const fs::path& file, std::vector<std::string>& problems) {
  const std::string architecture = header.architecture();
  if (!gguf::is_known(architecture)) {
    problems.push_back(
        format("{}: general.architecture = '{}' is not understood; have: {}", file, architecture, join(gguf::known_architectures(), ", ")));
    return {};
  }
  const Table keys = keys_of(header, architecture);
  Reader reader(keys);
  take_model(reader, architecture, header, bytes);
  for (const std::string& problem : reader.problems()) {
    problems.push_back(format("{}: {} ({})", file, problem, architecture));
  }
  Table model = reader.model();
  for (auto& [key, node] : model) {
    node.origin = Origin{Origin::Kind::preset, file.string(), 0, 0, ""};
  }
  return model;
}

}  // namespace kf::config
