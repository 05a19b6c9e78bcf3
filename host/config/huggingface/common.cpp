#include "config/huggingface/common.h"

#include <algorithm>
#include <map>

#include "config/rules.h"
#include "core/text.h"

namespace kf::config::huggingface {

void ignore_bookkeeping(Reader& c) {
  c.ignore({"architectures",
            "model_type",
            "torch_dtype",
            "dtype",
            "transformers_version",
            "use_cache",
            "bos_token_id",
            "eos_token_id",
            "pad_token_id",
            "unk_token_id",
            "sep_token_id",
            "_name_or_path",
            "name_or_path",
            "return_dict",
            "output_attentions",
            "output_hidden_states",
            "id2label",
            "label2id",
            "problem_type",
            "pretraining_tp",
            "auto_map",
            "attn_implementation",
            "_attn_implementation",
            "_attn_implementation_autoset",
            "_flash_attn_2_enabled",
            "chunk_size_feed_forward",
            "task_specific_params",
            "torchscript",
            "_commit_hash",
            "finetuning_task",
            "generation_config",
            "max_length",
            "cache_implementation",
            "tokenizer_class"});
  c.only("is_encoder_decoder", Node(false));
  c.only("is_decoder", Node(false));
  c.only("add_cross_attention", Node(false));
}

Shape take_shape(Reader& c, bool tied) {
  Shape shape;
  shape.dim = c.integer("hidden_size");
  shape.layers = c.integer("num_hidden_layers");
  shape.heads = c.integer("num_attention_heads");
  c.set("dim", shape.dim);
  c.set("n_layers", shape.layers);
  shape.layers = std::clamp<std::int64_t>(shape.layers, 0, kMostLayers);  // the rules refuse more; no list is made of them
  c.set("n_heads", shape.heads);
  c.set("n_kv_heads", c.integer("num_key_value_heads", shape.heads));
  c.set("vocab_size", c.integer("vocab_size"));
  c.set("ffn_hidden_dim", c.integer("intermediate_size"));
  c.set("max_seq_len", c.integer("max_position_embeddings"));
  c.set("init_std", c.real("initializer_range", 0.02));
  c.set("tie_embeddings", c.flag("tie_word_embeddings", tied));
  return shape;
}

void take_head_dim(Reader& c, std::int64_t fallback) {
  const std::int64_t width = c.integer("head_dim", fallback);
  if (width > 0) {
    c.set("head_dim", width);
  }
}

void take_rms_norm(Reader& c, const std::string& key, double fallback) {
  c.set("norm_type", std::string("rmsnorm"));
  c.set("norm_eps", c.real(key, fallback));
}

void take_layer_norm(Reader& c, const std::string& key, double fallback, bool bias) {
  c.set("norm_type", std::string("layernorm"));
  c.set("norm_eps", c.real(key, fallback));
  c.set("norm_bias", bias);
}

void take_activation(Reader& c, const std::string& key, const std::string& fallback, bool gated) {
  static const std::map<std::string, std::string> ours{{"silu", "silu"},
                                                       {"swish", "silu"},
                                                       {"gelu", "gelu"},
                                                       {"gelu_python", "gelu"},
                                                       {"gelu_new", "gelu_tanh"},
                                                       {"gelu_pytorch_tanh", "gelu_tanh"},
                                                       {"gelu_fast", "gelu_tanh"},
                                                       {"relu", "relu"},
                                                       {"relu2", "relu2"},
                                                       {"quick_gelu", "quick_gelu"},
                                                       {"tanh", "tanh"}};
  const std::string name = c.text(key, fallback);
  const auto found = ours.find(name);
  if (found == ours.end()) {
    c.problem(format("{} = '{}' is not an activation that is understood", key, name));
    return;
  }
  c.set("activation", found->second);
  if (gated != (found->second == "silu")) {
    c.set("mlp_gated", gated);
  }
}

void take_attention_bias(Reader& c, bool fallback, const std::string& where) {
  if (c.flag("attention_bias", fallback)) {
    c.set("attn_bias", where);
  }
}

std::optional<double> positive_real(Reader& c, const std::string& key) {
  const std::optional<double> value = c.maybe_real(key);
  if (value && *value <= 0) {
    c.problem(format("{} = {} is not understood; it must be positive, or null for none", key, *value));
    return std::nullopt;
  }
  return value;
}

void take_clip(Reader& c) {
  if (const std::optional<double> limit = positive_real(c, "clip_qkv")) {
    c.set("attn_qkv_clip", *limit);
  }
}

void set_qk_layer_norm(Reader& c, const std::string& kind, bool bias) {
  c.set("qk_norm", true);
  c.set("qk_norm_kind", kind);
  c.set("qk_norm_type", std::string("layernorm"));
  c.set("qk_norm_bias", bias);
}

void take_dropout(Reader& c, const std::string& key, const std::string& ours) {
  const double rate = c.real(key, 0);
  if (rate > 0) {
    c.set(ours, rate);
  }
}

std::vector<std::string> all_layers(std::int64_t layers, const std::string& kind) {
  return std::vector<std::string>(static_cast<std::size_t>(std::clamp<std::int64_t>(layers, 0, kMostLayers)), kind);
}

std::vector<std::string> every_nth_global(std::int64_t layers, std::int64_t n) {
  std::vector<std::string> kinds = all_layers(layers, "local");
  for (std::int64_t i = n; n > 0 && i <= static_cast<std::int64_t>(kinds.size()); i += n) {
    kinds[static_cast<std::size_t>(i - 1)] = "global";
  }
  return kinds;
}

namespace {

/// The kinds that layer_types names.
std::vector<std::string> kinds_of(Reader& c, const Array& types) {
  static const std::map<std::string, std::string> ours{
      {"full_attention", "global"}, {"sliding_attention", "local"}, {"chunked_attention", "chunk"}};
  std::vector<std::string> kinds;
  for (const Node& type : types) {
    const auto* name = std::get_if<std::string>(&type.value);
    const auto found = name ? ours.find(*name) : ours.end();
    if (found == ours.end()) {
      c.problem(format("layer_types has {}, which is not understood", brief(type)));
      return {};
    }
    kinds.push_back(found->second);
  }
  return kinds;
}

/// The shortest list that gives `kinds` when it is repeated.
std::vector<std::string> period(const std::vector<std::string>& kinds) {
  for (std::size_t length = 1; length < kinds.size(); ++length) {
    bool repeats = true;
    for (std::size_t i = length; i < kinds.size() && repeats; ++i) {
      repeats = kinds[i] == kinds[i - length];
    }
    if (repeats) {
      return {kinds.begin(), kinds.begin() + static_cast<std::ptrdiff_t>(length)};
    }
  }
  return kinds;
}

}  // namespace

void take_layer_types(Reader& c, const std::vector<std::string>& fallback, std::int64_t window) {
  const Array* types = c.list("layer_types");
  const std::vector<std::string> kinds = types ? kinds_of(c, *types) : fallback;
  if (types && kinds.size() != fallback.size() && !kinds.empty()) {
    c.problem(format("layer_types names {} layers, num_hidden_layers is {}", kinds.size(), fallback.size()));
    return;
  }
  const bool local = std::find(kinds.begin(), kinds.end(), "local") != kinds.end();
  if (local && window <= 0) {
    c.problem("layer_types has sliding_attention, but sliding_window is missing");
    return;
  }
  const auto first = std::find_if(kinds.begin(), kinds.end(), [](const std::string& kind) { return kind != "global"; });
  if (first == kinds.end()) {
    return;
  }
  std::vector<std::string> pattern = period(kinds);
  if (pattern.size() == kinds.size() && std::all_of(first, kinds.end(), [](const std::string& kind) { return kind == "local"; })) {
    c.set("window_from_layer", static_cast<std::int64_t>(first - kinds.begin()));
    pattern = {"local"};
  }
  c.set("layer_pattern", Array(pattern.begin(), pattern.end()));
  if (local) {
    c.set("window", window);
  }
}

}  // namespace kf::config::huggingface
