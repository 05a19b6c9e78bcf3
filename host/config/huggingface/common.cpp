#include "config/huggingface/common.h"

#include <algorithm>
#include <map>
#include <utility>

#include "config/rules/rules.h"
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

const char* one_of_names(Reader& c, const char* older, const char* newer) {
  if (c.given(older) && c.given(newer)) {
    c.problem(format("{} and {} are both given", older, newer));
    c.ignore({older});
    return newer;
  }
  return c.given(older) ? older : newer;
}

Shape take_shape(Reader& c, bool tied, const ShapeKeys& keys) {
  Shape shape;
  shape.dim = c.integer("hidden_size");
  shape.layers = c.integer(keys.layers);
  shape.heads = c.integer("num_attention_heads");
  c.set("dim", shape.dim);
  c.set("n_layers", shape.layers);
  shape.layers = std::clamp<std::int64_t>(shape.layers, 0, kMostLayers);  // the rules refuse more; no list is made of them
  c.set("n_heads", shape.heads);
  c.set("n_kv_heads", c.integer("num_key_value_heads", shape.heads));
  c.set("vocab_size", c.integer("vocab_size"));
  c.set("ffn_hidden_dim", c.integer(keys.width));
  c.set("max_seq_len", c.integer("max_position_embeddings"));
  c.set("init_std", c.real("initializer_range", 0.02));
  c.set("tie_embeddings", c.flag("tie_word_embeddings", tied));
  return shape;
}

std::int64_t head_width(std::int64_t dim, std::int64_t heads) { return heads > 0 ? std::max<std::int64_t>(dim / heads, 1) : 1; }

void take_head_dim(Reader& c, std::int64_t fallback) {
  const bool given = c.given("head_dim");
  const std::optional<std::int64_t> width = c.maybe_integer("head_dim");
  if (width && *width <= 0) {
    c.problem(format("head_dim = {} is not understood; it must be positive, or null for hidden_size / num_attention_heads", *width));
  } else if (width) {
    c.set("head_dim", *width);
  } else if (!given && fallback > 0) {
    c.set("head_dim", fallback);
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
  if (c.given(key) && !c.has(key)) {
    c.problem(format("{} = null is not an activation; without the key it is '{}'", key, fallback));
  }
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

void take_cap(Reader& c, const std::string& key, const std::string& ours, double fallback) {
  const std::optional<double> value = positive_real(c, key);
  if (const double cap = c.given(key) ? value.value_or(0) : fallback; cap > 0) {
    c.set(ours, cap);
  }
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

double dropout_rate(Reader& c, const std::string& key) {
  const double rate = c.real(key, 0);
  if (!(rate >= 0 && rate < 1)) {
    c.problem(format("{} = {} is not understood; a rate of dropout is at least 0 and below 1", key, rate));
    return 0;
  }
  return rate;
}

void take_dropout(Reader& c, const std::string& key, const std::string& ours) {
  const double rate = dropout_rate(c, key);
  if (rate > 0) {
    c.set(ours, rate);
  }
}

Shape take_rms_base(Reader& c, double eps, bool tied) {
  const Shape shape = take_shape(c, tied);
  take_rms_norm(c, "rms_norm_eps", eps);
  take_dropout(c, "attention_dropout", "dropout_attn");
  return shape;
}

Shape take_silu_base(Reader& c, double eps) {
  take_activation(c, "hidden_act", "silu", true);
  return take_rms_base(c, eps);
}

void take_router_groups(Reader& c, std::int64_t usual_groups, std::int64_t usual_kept) {
  const std::int64_t groups = c.integer("n_group", usual_groups);
  const std::int64_t kept = c.integer("topk_group", usual_kept);
  if (kept < 1 || kept > groups) {
    c.problem(format("topk_group = {} is not understood; it may be 1 to n_group = {}", kept, groups));
  }
  if (groups > 1) {
    c.set("moe_groups", groups);
    c.set("moe_topk_groups", kept);
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

std::int64_t sliding_window_or(Reader& c, std::int64_t usual) { return c.integer("sliding_window", c.given("sliding_window") ? 0 : usual); }

std::vector<std::string> take_layer_types(Reader& c, const std::vector<std::string>& fallback, std::int64_t window) {
  const Array* types = c.list("layer_types");
  std::vector<std::string> kinds = types ? kinds_of(c, *types) : fallback;
  if (types && kinds.size() != fallback.size() && !kinds.empty()) {
    c.problem(format("layer_types names {} layers, num_hidden_layers is {}", kinds.size(), fallback.size()));
    return fallback;
  }
  const bool local = std::find(kinds.begin(), kinds.end(), "local") != kinds.end();
  if (local && window <= 0) {
    c.problem("layer_types has sliding_attention, but sliding_window is missing");
    return fallback;
  }
  const auto first = std::find_if(kinds.begin(), kinds.end(), [](const std::string& kind) { return kind != "global"; });
  if (first == kinds.end()) {
    return kinds;
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
  return kinds;
}

namespace {

/// The shortest list that gives the words of `flags` when it is repeated.
Array pattern_of(const std::vector<bool>& flags, const char* yes, const char* no) {
  std::vector<std::string> words;
  for (const bool flag : flags) {
    words.emplace_back(flag ? yes : no);
  }
  const std::vector<std::string> shortest = period(words);
  return {shortest.begin(), shortest.end()};
}

/// n where exactly every n-th, from 1, is false; 0 where none is; nothing else.
std::optional<std::int64_t> every_nth_off(const std::vector<bool>& flags) {
  const auto first = std::find(flags.begin(), flags.end(), false);
  const std::int64_t n = first == flags.end() ? 0 : first - flags.begin() + 1;
  for (std::size_t i = 0; i < flags.size(); ++i) {
    if (flags[i] != (n == 0 || (static_cast<std::int64_t>(i) + 1) % n != 0)) {
      return std::nullopt;
    }
  }
  return n;
}

/// A dense prefix, then every n-th layer from 1 with experts: (prefix, n).
std::optional<std::pair<std::int64_t, std::int64_t>> prefix_and_step(const std::vector<bool>& experts) {
  const auto layers = static_cast<std::int64_t>(experts.size());
  const std::int64_t first = std::find(experts.begin(), experts.end(), true) - experts.begin();
  for (std::int64_t step = 1; step <= first + 1 && first < layers; ++step) {
    const std::int64_t prefix = step == first + 1 ? 0 : first;
    bool fits = true;
    for (std::int64_t i = 0; i < layers && fits; ++i) {
      fits = experts[static_cast<std::size_t>(i)] == (i >= prefix && (i + 1) % step == 0);
    }
    if (fits) {
      return std::pair(prefix, step);
    }
  }
  return std::nullopt;
}

}  // namespace

void set_expert_layers(Reader& c, const std::vector<bool>& experts) {
  const auto simple = prefix_and_step(experts);
  if (simple) {
    c.set("moe_first_dense", simple->first);
    c.set("moe_frequency", simple->second);
  } else if (std::find(experts.begin(), experts.end(), true) == experts.end()) {
    c.problem("no layer has experts, which is not understood");
  } else {
    c.set("moe_pattern", pattern_of(experts, "experts", "dense"));
    c.unset("moe_first_dense");
    c.unset("moe_frequency");
  }
}

void set_rotating_layers(Reader& c, const std::vector<bool>& rotates) {
  const std::optional<std::int64_t> n = every_nth_off(rotates);
  if (n && *n == 1) {
    c.set("pos_embedding", std::string("none"));
  } else if (n && *n > 0) {
    c.set("nope_every", *n);
  } else if (!n) {
    c.set("rope_pattern", pattern_of(rotates, "rope", "nope"));
  }
}

std::vector<bool> take_rotating_layers(Reader& c, std::int64_t layers, std::int64_t interval, bool empty_is_none) {
  const std::int64_t every = c.integer("no_rope_layer_interval", interval);
  const Array* const list = c.list("no_rope_layers");
  std::vector<bool> rotates;
  if (list == nullptr || (empty_is_none && list->empty())) {
    for (std::int64_t i = 1; i <= layers; ++i) {
      rotates.push_back(every <= 0 || i % every != 0);
    }
    return rotates;
  }
  for (const Node& node : *list) {
    const bool yes = node == Node(std::int64_t{1}) || node == Node(true);
    if (!yes && node != Node(std::int64_t{0}) && node != Node(false)) {
      c.problem(format("no_rope_layers has {}, which is not understood; 1 is a layer that rotates, 0 one that does not", brief(node)));
    }
    rotates.push_back(yes);
  }
  if (static_cast<std::int64_t>(rotates.size()) != layers) {
    c.problem(format("no_rope_layers names {} layers, num_hidden_layers is {}", rotates.size(), layers));
    rotates.resize(static_cast<std::size_t>(layers), true);
  }
  return rotates;
}

void rotate_sliding_layers(Reader& c, const std::vector<std::string>& kinds, bool all_global_rotate) {
  std::vector<bool> rotates;
  for (const std::string& kind : kinds) {
    rotates.push_back(kind != "global");
  }
  const bool slides = std::find(rotates.begin(), rotates.end(), true) != rotates.end();
  set_rotating_layers(c, slides || !all_global_rotate ? rotates : std::vector<bool>(kinds.size(), true));
}

void take_expert_layers(Reader& c, std::int64_t layers, std::int64_t first_dense) {
  const std::int64_t known = c.integer("first_k_dense_replace", first_dense);
  const Array* const types = c.list("mlp_layer_types");
  std::vector<bool> experts;
  for (std::int64_t i = 0; i < layers && types == nullptr; ++i) {
    experts.push_back(i >= known);
  }
  for (const Node& type : types ? *types : Array()) {
    if (type != Node(std::string("sparse")) && type != Node(std::string("dense"))) {
      c.problem(format("mlp_layer_types has {}, which is not understood; 'dense' and 'sparse' are", brief(type)));
      return;
    }
    experts.push_back(type == Node(std::string("sparse")));
  }
  if (static_cast<std::int64_t>(experts.size()) != layers) {
    c.problem(format("mlp_layer_types names {} layers, num_hidden_layers is {}", experts.size(), layers));
    return;
  }
  set_expert_layers(c, experts);  // the list wins, as in the classes
}

namespace {

/// sliding_window_pattern: a number, or "LLLG", whose length it is.
std::int64_t global_period(Reader& c, std::int64_t fallback) {
  const Node* const node = c.node("sliding_window_pattern");
  const auto* const text = node != nullptr ? std::get_if<std::string>(&node->value) : nullptr;
  if (text == nullptr) {
    return c.integer("sliding_window_pattern", fallback);
  }
  if (text->find_first_not_of('L') != text->size() - 1 || text->back() != 'G') {
    c.problem(format("sliding_window_pattern = '{}' is not understood; letters L before one G are", *text));
    return fallback;
  }
  return static_cast<std::int64_t>(text->size());
}

}  // namespace

void take_global_without_rotation(Reader& c, std::int64_t layers, std::int64_t usual_window) {
  const std::int64_t window = sliding_window_or(c, usual_window);
  const std::int64_t pattern = global_period(c, window > 0 ? 4 : 0);
  const bool slides = window > 0;
  if (slides && pattern <= 0 && !c.has("layer_types")) {
    c.problem(format("sliding_window_pattern = {} is not understood; it must be at least 1", pattern));
  }
  const std::vector<std::string> usual = slides ? every_nth_global(layers, pattern) : all_layers(layers, "global");
  const std::vector<std::string> kinds = take_layer_types(c, usual, window);
  if (slides) {
    rotate_sliding_layers(c, kinds, /*all_global_rotate=*/false);
  }
}

}  // namespace kf::config::huggingface
