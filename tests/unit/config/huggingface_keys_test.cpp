// Every key of a config.json, in every family, changed in turn: nothing of it is guessed and nothing is passed over. hf_settings.json has
// what transformers writes (tests/parity/make_hf_settings.py).

#include <map>
#include <set>

#include "config/huggingface/families.h"
#include "config/huggingface/huggingface.h"
#include "config/tree/json.h"
#include "job.h"

namespace kf::test {
namespace {

using config::Array;
using config::Node;
using config::Table;

struct Reading {
  Table model;
  std::string problems;
};

Reading reading(const Table& keys) {
  std::vector<std::string> problems;
  Reading out;
  out.model = config::model_of_config_json(Node(keys), "config.json", problems);
  out.problems = join(problems, "\n");
  const Node* const dim = out.model.find("dim");
  const Node* const heads = out.model.find("n_heads");
  if (dim && heads && out.model.find("head_dim") == nullptr && out.model.find("attention") == nullptr) {  // what an unset one stands for
    const std::int64_t count = std::get<std::int64_t>(heads->value);
    out.model["head_dim"] = Node(count > 0 ? std::get<std::int64_t>(dim->value) / count : 0);
  }
  return out;
}

const Table& families() {
  static const Node all = [] {
    const fs::path file = fs::path(KF_TEST_DATA) / "hf_settings.json";
    return config::parse_json(read_file(file), file.string());
  }();
  return *all.table();
}

/// Keys that no forward reads, in any family: token ids, how programs run a model, what heads for other tasks have, layers for training
/// that the classes do not build.
bool without_effect(const std::string& key) {
  static const std::set<std::string> keys{"architectures",
                                          "bos_token_id",
                                          "eos_token_id",
                                          "pad_token_id",
                                          "sep_token_id",
                                          "eod_token_id",
                                          "use_cache",
                                          "dtype",
                                          "torch_dtype",
                                          "pretraining_tp",
                                          "n_ctx",
                                          "output_router_logits",
                                          "num_nextn_predict_layers",
                                          "mtp_layer_types",
                                          "mtp_mlp_layer_types",
                                          "summary_activation",
                                          "summary_first_dropout",
                                          "summary_proj_to_labels",
                                          "summary_type",
                                          "summary_use_proj",
                                          "classifier_dropout",
                                          "_name_or_path",
                                          "chunk_size_feed_forward",
                                          "model_type",
                                          "output_attentions",
                                          "output_hidden_states",
                                          "problem_type",
                                          "return_dict",
                                          "init_device",
                                          "attn_impl",
                                          "id2label",
                                          "label2id"};
  return keys.count(key) > 0;
}

/// Keys that act under others only, or never, with the family that they were seen in.
bool idle_here(const std::string& family, const std::string& key) {
  static const std::map<std::string, std::set<std::string>> idle{
      {"bloom", {"slow_but_exact"}},                                 // how a program sums
      {"deepseek_v2", {"n_group", "topk_group", "norm_topk_prob"}},  // topk_method is greedy, and the class never divides
      {"dots1", {"max_window_layers", "sliding_window"}},            // layer_types says it, and no layer slides
      {"falcon", {"num_kv_heads"}},                                  // only with new_decoder_architecture
      {"gemma3_text", {"_sliding_window_pattern"}},                  // layer_types says it
      {"gpt2", {"reorder_and_upcast_attn"}},                         // how a program sums
      {"gpt_bigcode", {"attention_softmax_in_fp32", "scale_attention_softmax_in_fp32"}},  // how a program sums
      {"granite_swa", {"rope_theta"}},                                                    // layer_rope_theta says it
      {"granitemoe_swa", {"rope_theta"}},                                                 // the same
      {"hunyuan_v1_dense", {"factor"}},                                                   // not read beside alpha
      {"hy_v3", {"enable_moe_fp32_combine"}},                                             // how a program sums
      {"ministral3", {"max_position_embeddings"}},                                        // of rope_parameters, where nobody reads it
      {"phi3", {"original_max_position_embeddings"}},                                     // nothing is stretched
      {"qwen2", {"max_window_layers", "sliding_window", "use_sliding_window"}},           // layer_types says it, and no layer slides
      {"qwen2_moe", {"max_window_layers", "sliding_window", "use_sliding_window"}},       // the same
      {"qwen3", {"max_window_layers", "sliding_window", "use_sliding_window"}},           // the same
      {"qwen3_moe", {"sliding_window", "use_sliding_window"}},                            // the same
      {"smollm3", {"sliding_window", "use_sliding_window", "no_rope_layer_interval"}},    // lists say it, and no layer slides
      {"cohere2", {"sliding_window_pattern", "_sliding_window_pattern"}},                 // layer_types says it
      {"ernie4_5_moe", {"moe_layer_end_index"}},                                          // behind the last layer it says nothing
      {"exaone4", {"sliding_window_pattern"}},                                            // the same
      {"exaone_moe", {"sliding_window_pattern", "first_k_dense_replace"}},                // the same, and mlp_layer_types
      {"llama4_text", {"no_rope_layer_interval", "interleave_moe_layer_step"}},           // lists say it
      {"gemma4_text", {"vocab_size_per_layer_input", "use_double_wide_mlp"}},             // nothing is shared or embedded by layer
      {"afmoe", {"global_attn_every_n_layers"}},                                          // layer_types says it
      {"solar_open", {"intermediate_size"}},                                              // no layer is dense
  };
  const auto found = idle.find(family);
  return found != idle.end() && found->second.count(key) > 0;
}

/// Other values of the same kind, and of other kinds.
std::vector<Node> others(const Node& node) {
  const Node text(std::string("zzz"));
  if (const auto* value = std::get_if<bool>(&node.value)) {
    return {Node(!*value), text};
  }
  if (const auto* value = std::get_if<std::int64_t>(&node.value)) {
    return {Node(*value + 1), text, Node(static_cast<double>(*value) + 0.5), Node(std::int64_t{0}), Node(std::int64_t{-7})};
  }
  if (const auto* value = std::get_if<double>(&node.value)) {
    return {Node(*value * 1.5 + 0.25), text};
  }
  if (node.array()) {
    Array longer = *node.array();
    longer.push_back(text);
    return {Node(longer), text, Node(std::int64_t{3})};
  }
  if (node.is_null()) {
    return {Node(std::int64_t{3}), text, Node(true)};
  }
  return {text, Node(std::int64_t{3})};
}

class Mutations {
 public:
  Mutations(std::string family, Table keys) : family_(std::move(family)), keys_(std::move(keys)), before_(reading(keys_)) {}

  const Reading& before() const { return before_; }

  void change_each() {
    for (const auto& [key, value] : keys_) {
      if (key == "model_type" || without_effect(key)) {
        continue;
      }
      for (const Node& other : others(value)) {
        if (other == value) {
          continue;
        }
        Table changed = keys_;
        changed[key] = other;
        expect_noticed(changed, key, key + " = " + config::brief(other));
      }
      if (const Table* inner = value.table()) {
        change_inside(key, *inner);
      }
    }
    Table more = keys_;
    more["zzz_unknown"] = Node(std::int64_t{1});
    expect_noticed(more, "zzz_unknown", "a further key");
  }

 private:
  void change_inside(const std::string& outer, const Table& table) {
    const auto with = [&](const Table& inner) {
      Table changed = keys_;
      changed[outer] = Node(inner);
      return changed;
    };
    for (const auto& [key, value] : table) {
      if (value.table() || without_effect(key)) {
        continue;
      }
      for (const Node& other : others(value)) {
        if (other == value) {
          continue;
        }
        Table inner = table;
        inner[key] = other;
        expect_noticed(with(inner), key, outer + "." + key + " = " + config::brief(other));
      }
    }
    Table more = table;
    more["zzz_unknown"] = Node(std::int64_t{1});
    expect_noticed(with(more), "zzz_unknown", "a further key in " + outer);
  }

  void expect_noticed(const Table& changed, const std::string& key, const std::string& what) {
    const Reading after = reading(changed);
    const bool noticed = after.problems.find(key) != std::string::npos || !(after.model == before_.model) || idle_here(family_, key);
    if (!noticed) {
      UNSCOPED_INFO(family_ << ": " << what << " changes nothing; problems: " << after.problems);
    }
    CHECK(noticed);
  }

  std::string family_;
  Table keys_;
  Reading before_;
};

}  // namespace

TEST_CASE("huggingface: a changed key changes the model or is named, in every family", "[huggingface]") {
  for (const auto& [family, entry] : families()) {
    CAPTURE(family);
    Mutations mutations(family, *entry.table()->find("config")->table());
    CHECK_THAT(mutations.before().problems, Catch::Equals(""));
    mutations.change_each();
  }
}

TEST_CASE("huggingface: a key that is left out is what its class takes then, or is named", "[huggingface]") {
  for (const auto& [family, entry] : families()) {
    const Table& keys = *entry.table()->find("config")->table();
    for (const auto& [key, differences] : *entry.table()->find("absent")->table()) {
      CAPTURE(family, key);
      Table fewer = keys;
      fewer.erase(key);
      Table full = fewer;
      for (const auto& [name, value] : *differences.table()) {
        full[name] = value;
      }
      // Version 5 forgets attn_config.rope_theta, by which published files are meant, as version 4 read them.
      const bool differs = family == "dbrx" && key == "rope_parameters";
      // attention_layers says the same, so that nothing is missing.
      const bool twice = family == "gpt_neo" && key == "attention_types";
      if (differs || twice) {
        continue;
      }
      const Reading left_out = reading(fewer), spelt_out = reading(full);
      if (left_out.problems.empty()) {  // else it is refused
        CHECK_THAT(spelt_out.problems, Catch::Equals(""));
        CHECK(left_out.model == spelt_out.model);
      }
    }
  }
}

TEST_CASE("huggingface: every family that is read has such a file", "[huggingface]") {
  for (const std::string& name : config::huggingface::family_names()) {
    CAPTURE(name);
    CHECK(families().find(name) != nullptr);
  }
}

}  // namespace kf::test
