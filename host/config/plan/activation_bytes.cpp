#include "config/plan/activation_bytes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "config/plan/context_parallel.h"
#include "config/plan/derived.h"
#include "config/plan/kernel_set.h"
#include "config/plan/recomputation.h"

namespace kf::config {
namespace {

constexpr double kChunk = 4096;  // positions of a piece of logits

double real(std::int64_t n) { return static_cast<double>(n); }

/// What one block keeps, by what recomputation can leave out.
struct BlockBytes {
  double input = 0;              // the residual stream as it enters
  double attention = 0;          // inside the attention branch: normed input, queries, keys, values, mixed values
  double attention_results = 0;  // of it what selective recomputation keeps: results of products and of the attention kernel
  double middle = 0;             // the residual stream between the branches
  double mlp = 0;
  double mlp_results = 0;
  double passing = 0;                   // gradients of the inside in backward
  std::map<std::string, double> named;  // results that train.remat_save and the named policies can keep, under their names
};

class Sizes {
 public:
  Sizes(const Config& config, double rows, double length, const std::vector<AdaptedLayer>& adapters, const Spread& spread)
      : config_(config),
        m_(config.model),
        adapters_(adapters),
        spread_(spread),
        rows_(rows),
        length_(length),
        tokens_(rows * length / spread.cp) {}

  /// Bytes of a number in the type of the computation.
  double width() const { return config_.train.mixed_precision == "fp32" ? 4 : 2; }
  /// A tensor (rows, length, columns) in that type, and in fp32.
  double low(double columns) const { return tokens_ * columns * width(); }
  double fp32(double columns) const { return tokens_ * columns * 4; }
  /// The same inside of what tensor parallelism divides: heads, hidden widths.
  double inner(double columns) const { return low(columns) / spread_.tp; }
  /// A tensor of the residual stream, and of its type.
  double stream() const { return low(dim()) / positions_shared(); }
  double wide_stream() const { return fp32(dim()) / positions_shared(); }
  double dim() const { return real(m_.dim); }

  BlockBytes block(std::int64_t layer) const {
    BlockBytes out;
    out.input = stream();
    add_attention(out, layer);
    add_mlp(out, layer);
    const bool parallel = m_.norm_placement.starts_with("parallel");
    out.middle = parallel ? 0 : stream();
    if (m_.norm_placement == "sandwich" || m_.norm_placement == "post") {  // the norm behind a branch keeps what it normalises
      out.attention += norm_input();
      out.mlp += norm_input();
    }
    if (m_.dropout_resid > 0) {
      out.attention += wide_stream();
      out.mlp += wide_stream();
    }
    add_adapters(out, layer);
    // The gradient that goes round the branch; or what norms and their gradients pass through in fp32, when the branch is over.
    out.passing = std::max(out.passing + stream(), 3 * wide_stream() + 2 * stream());
    return out;
  }

  double last_norm() const { return low(dim()) + norm_input(); }  // the head's input is gathered

  double logits() const {
    const TrainConfig& t = config_.train;
    const double vocabulary = real(m_.vocab_size) / spread_.tp;
    const double chunk = std::min(tokens_, t.ce_chunk_size > 0 ? real(t.ce_chunk_size) : kChunk);
    const double narrow = width() == 2 ? 2 : 0;
    const double capped = m_.final_logit_softcap > 0 ? 2 : 0;
    const bool kept_low = narrow > 0 && m_.logits_dtype == "compute";       // nothing of them is fp32
    if (t.loss_fn == "cross_entropy" && loss_by_rows() && !m_.head_bias) {  // from hidden states
      // A piece, the gradients of all hidden states, and those of the head, of one piece alone in its type.
      const double piece = std::min(tokens_, std::max(1.0, std::floor(real(kLogitsAtOnce) / vocabulary)));
      return piece * vocabulary * width() + low(dim()) + vocabulary * dim() * (piece < tokens_ ? 8 : width());
    }
    if (t.loss_fn == "fused_linear_cross_entropy" && loss_by_rows()) {
      return chunk * vocabulary * width() + low(dim()) + vocabulary * dim() * 4;
    }
    if (t.loss_fn == "fused_linear_cross_entropy") {
      // A piece of logits three times in fp32, the gradients of all hidden states, and those of the head.
      return chunk * vocabulary * (narrow + 4 * (3 + capped)) + low(dim()) + vocabulary * dim() * 4;
    }
    const double z = t.z_loss_weight > 0 ? width() + 4 : 0;
    const double all = tokens_ * vocabulary;
    if (kept_low && t.loss_fn == "cross_entropy") {
      return all * (6 + capped * width() + z);
    }
    if (loss_by_rows()) {  // the logits and their gradient
      return all * (2 * width() + capped * width() + z);
    }
    if (t.loss_fn == "chunked_cross_entropy") {
      return all * (4 + 2 * width() + capped * width() + z) + chunk * vocabulary * 8;
    }
    return all * (12 + narrow + capped * width() + z);
  }

  double logits_piece() const { return std::min(tokens_, kChunk) * real(m_.vocab_size) / spread_.tp * (width() == 2 ? 10 : 8); }

 private:
  /// Of what comes before a norm: nothing new for RMS norms, an fp32 copy for layer norms of a narrower type (but for those by rows,
  /// kernels/layer_norm); besides the scales.
  double norm_copy() const {
    const bool copies = m_.norm_type == "layernorm" && width() == 2 && !on_cpu_by_kernels();
    return (copies ? wide_stream() : 0) + fp32(m_.norm_type == "layernorm" ? 2 : 1) / positions_shared();
  }
  double norm_input() const { return stream() + norm_copy(); }
  /// Over how many ranks the positions between the products of tensor parallelism lie.
  double positions_shared() const { return spread_.split_sequence ? spread_.tp : 1; }

  /// Whether the kernels by rows compute what they take.
  bool on_cpu_by_kernels() const { return config_.run.device == "cpu" && fused_kernels() && config_.train.mixed_precision != "fp16"; }

  bool fused_kernels() const { return kernel_set(config_.train) == KernelSet::fused; }

  /// Whether losses hold no fp32 copy of logits, and the gradients of a piece take its place (kernels/linear_loss/row_loss.h).
  bool loss_by_rows() const {
    const bool floats = config_.train.mixed_precision != "fp16" && (m_.logits_dtype != "compute" || width() == 4);
    return config_.run.device == "cpu" && fused_kernels() && floats && spread_.tp == 1;
  }

  /// Whether attention is computed by rows (kernels/attention/by_rows.h): no scores, and no repeated heads.
  bool by_rows() const {
    const bool chosen = config_.run.device == "cpu" && m_.sdpa_backend == "auto" && fused_kernels();
    return chosen && config_.train.mixed_precision != "fp16" && m_.dropout_attn == 0 && m_.pos_embedding != "alibi";
  }

  /// Whether the scores of a layer exist as a whole: the formula instead of the fused kernel.
  bool whole_scores() const {
    if (by_rows()) {
      return false;
    }
    const bool math = m_.sdpa_backend == "math" || (m_.sdpa_backend == "auto" && !fused_kernels());
    return math || m_.attn_sink || m_.attn_softcap > 0 || m_.dropout_attn > 0;
  }

  double scores() const {
    if (!whole_scores()) {
      return 0;
    }
    double each = width() + 1;
    if (m_.attn_fp32 != "none") {
      each = 4 + (width() == 2 ? width() : 0) + 1;
    }
    each += m_.attn_softcap > 0 ? width() : 0;
    each += m_.dropout_attn > 0 ? width() + 1 : 0;
    return rows_ * real(m_.n_heads) / spread_.tp * length_ * length_ / spread_.cp * each;
  }

  void add_attention(BlockBytes& out, std::int64_t layer) const {
    const double heads = real(m_.n_heads);
    out.attention += low(dim()) + norm_copy();  // the normed input
    double kernel = 0;                          // what the attention kernel keeps: q, k, v, the result
    double mixed = 0;
    double products = 0;
    double keys = 0;                                         // of keys and values
    const double all = uses_ring(config_) ? 1 : spread_.cp;  // keys and values of all ranks of cp are gathered
    if (m_.attention == "mla") {
      const double query = heads * real(m_.mla_nope_dim + m_.mla_rope_dim);
      const double up = heads * real(m_.mla_nope_dim + m_.mla_v_dim);
      mixed = heads * real(m_.mla_v_dim);
      keys = real(m_.mla_kv_rank + m_.mla_rope_dim) * spread_.tp;  // the latent, whole on each rank
      kernel = inner(query + all * (query + up) + mixed);          // v is a view of the up-projection
      products = inner(query + all * up) + low(real(m_.mla_q_rank + m_.mla_kv_rank + m_.mla_rope_dim)) + stream();
      out.attention += low(2 * real(m_.mla_q_rank) + 2 * real(m_.mla_kv_rank) + real(m_.mla_rope_dim)) + fp32(2);
      out.named = {{"q", inner(query)}, {"kv", inner(all * up)}};
    } else {
      const double query = heads * real(head_dim(m_, layer));
      const double key = std::max(real(kv_heads(m_, layer)), spread_.tp) * real(head_dim(m_, layer));  // a rank has one at least
      mixed = query;
      keys = 2 * key;
      // Behind gathered keys each piece of the positions has its own result, and they are joined.
      kernel = inner((all > 1 ? 3 : 2) * query + 2 * all * (by_rows() ? key : query));
      products = inner(query + 2 * key) + stream();
      if (m_.qk_norm && m_.qk_norm_kind != "l2" && !norms_inside(layer)) {
        out.attention += inner(query + key) + fp32(heads + real(kv_heads(m_, layer))) / spread_.tp;
      }
      if (m_.v_norm != "none") {
        out.attention += inner(key) + fp32(real(kv_heads(m_, layer))) / spread_.tp;
      }
      out.named = {{"q", inner(query)}, {"k", inner(key)}, {"v", inner(key)}};
    }
    if (m_.attn_gate != "none") {  // its sigmoid, and the mixed values before it
      out.attention += inner(mixed + (m_.attn_gate == "head" ? heads : mixed));
    }
    const double lse = fp32(heads) / spread_.tp;
    out.named["context"] = inner(mixed) + lse;
    out.named["out"] = stream();
    out.attention += kernel + lse + scores();
    out.attention_results = products + inner(mixed) + lse;
    const double gathered = all > 1 ? 4 * inner(all * keys) : 0;  // gradients of pieces, each as long as the sequence, and their sums
    out.passing = std::max(out.passing, inner(4 * mixed) + 2 * scores() + gathered);
  }

  /// Whether norms of heads are inside of attention's one node (kernels/self_attention), which makes them again.
  bool norms_inside(std::int64_t layer) const {
    const bool norms = m_.qk_norm_kind == "head" && m_.qk_norm_type == "rmsnorm" && !m_.qk_norm_late && m_.v_norm == "none";
    const bool bare = m_.attn_gate == "none" && !m_.attn_sink && !m_.attn_temp_tuning && m_.attn_qkv_clip == 0 && !has_input_bias(m_) &&
                      !has_output_bias(m_) && !keys_are_values(m_, layer) && !has_adapter(layer, "attention.");
    return norms && bare && by_rows() && !puts_off() && spread_.tp == 1 && spread_.cp == 1;
  }

  /// Gradients of weights are put off, as no layer that is one node does it.
  bool puts_off() const { return config_.distributed.pp > 1 && config_.distributed.pp_schedule == "zero_bubble"; }

  bool has_adapter(std::int64_t layer, const char* branch) const {
    const std::string prefix = "layers." + std::to_string(layer) + "." + branch;
    return std::any_of(adapters_.begin(), adapters_.end(), [&](const AdaptedLayer& a) { return a.name.starts_with(prefix); });
  }

  /// Whether a dense layer is one node of the graph (kernels/gated_mlp), which keeps both products alone.
  bool one_node_mlp(std::int64_t layer) const { return one_node_layers() && !has_adapter(layer, "mlp."); }

  bool one_node_layers() const {
    return on_cpu_by_kernels() && spread_.tp == 1 && !puts_off() && m_.mlp_act_limit == 0 && !m_.act_fp32 && !m_.mlp_bias;
  }

  /// The same of experts (kernels/gated_experts), which keep neither sorted rows nor what came out.
  bool one_node_experts() const {
    return one_node_layers() && mlp_gated(m_) && m_.moe_impl != "loop" && config_.distributed.ep == 1 && !m_.moe_weight_on_input &&
           !m_.moe_gradient_scale;
  }

  /// Of a feed-forward layer of width `hidden` over `share` rows a token; `one_node`: as one node of the graph.
  double mlp_kept(double hidden, double share, bool one_node) const {
    const bool fused = m_.activation == "silu" && m_.mlp_act_limit == 0 && !m_.act_fp32 && fused_kernels();
    double inside = 2;  // both products, or one and its activation
    if (mlp_gated(m_) && !one_node) {
      inside = fused ? 3 : 4;
    }
    const double wide = m_.act_fp32 && width() == 2 ? 8 : 0;
    return share * (low(inside * hidden) + tokens_ * hidden * wide) / spread_.tp;
  }

  void add_mlp(BlockBytes& out, std::int64_t layer) const {
    out.mlp += low(dim()) + norm_copy();  // the normed input
    const double matrices = mlp_gated(m_) ? 2 : 1;
    const bool experts = is_moe_layer(m_, layer);
    if (!experts || m_.moe_beside_dense) {
      const double hidden = real(ffn_hidden_dim(m_));
      out.mlp += mlp_kept(hidden, 1, one_node_mlp(layer));
      out.mlp_results += inner(matrices * hidden) + stream();
      out.passing = std::max(out.passing, inner((matrices + 1) * hidden));
      out.named["gate"] = mlp_gated(m_) ? inner(hidden) : 0;
      out.named["up"] = inner(hidden);
      out.named["down"] = stream();
    }
    if (!experts) {
      return;
    }
    if (m_.moe_beside_dense) {
      out.mlp += 3 * norm_input();
    }
    const double slots = real(m_.moe_top_k);
    const double hidden = real(expert_ffn_hidden_dim(m_));
    const double shared = real(m_.moe_shared_experts * shared_ffn_hidden_dim(m_));
    const double routing = fp32(4 * real(m_.num_experts)) + tokens_ * slots * 8 * 4;
    const bool one_node = one_node_experts();
    const double around = one_node ? 0 : low(2 * slots * dim());  // sorted rows, and what came out
    out.mlp += mlp_kept(hidden, slots, one_node) + around + mlp_kept(shared, 1, one_node_mlp(layer)) + routing;
    out.mlp_results += inner(matrices * (slots * hidden + shared)) + low((slots + 1) * dim());
    out.passing = std::max(out.passing, inner((matrices + 1) * slots * hidden) + low(2 * slots * dim()) + fp32(dim()));
  }

  /// What a LoRA adds to its layer: the scaled result of its first matrix, and the inputs that dropout left with the factors that did so.
  /// Recomputation that keeps the layer's product keeps its two products, too.
  void add_adapters(BlockBytes& out, std::int64_t layer) const {
    static const std::map<std::string, std::string> names{
        {"attention.q_proj", "q"},   {"attention.k_proj", "k"}, {"attention.v_proj", "v"}, {"attention.kv_b_proj", "kv"},
        {"attention.o_proj", "out"}, {"mlp.gate_proj", "gate"}, {"mlp.up_proj", "up"},     {"mlp.down_proj", "down"}};
    const std::string prefix = "layers." + std::to_string(layer) + ".";
    for (const AdaptedLayer& adapter : adapters_) {
      if (!adapter.name.starts_with(prefix)) {
        continue;
      }
      const std::string name = adapter.name.substr(prefix.size());
      const bool attention = name.starts_with("attention.");
      const double products = low(adapter.rank + adapter.out);
      (attention ? out.attention : out.mlp) += low(adapter.rank) + (config_.adapter.dropout > 0 ? low(2 * adapter.in) : 0);
      (attention ? out.attention_results : out.mlp_results) += products;
      if (const auto known = names.find(name); known != names.end() && out.named.count(known->second) > 0) {
        out.named[known->second] += products;
      }
    }
  }

  const Config& config_;
  const ModelConfig& m_;
  const std::vector<AdaptedLayer>& adapters_;
  const Spread& spread_;
  double rows_, length_, tokens_;
};

double sum_of(const BlockBytes& b, const std::vector<std::string>& names) {
  double out = 0;
  for (const std::string& name : names) {
    const auto found = b.named.find(name);
    out += found != b.named.end() ? found->second : 0;
  }
  return out;
}

/// What recomputation leaves of a block.
double kept_of(const BlockBytes& b, const TrainConfig& train, std::int64_t layer) {
  const double whole = b.input + b.attention + b.middle + b.mlp;
  if (!recomputes(train, layer)) {
    return whole;
  }
  if (train.activation_checkpointing == "full") {
    return b.input;
  }
  if (train.activation_checkpointing != "selective") {
    return b.input + sum_of(b, kept_by(train.activation_checkpointing));
  }
  const auto saves = [&](const char* name) {
    return std::find(train.remat_save.begin(), train.remat_save.end(), name) != train.remat_save.end();
  };
  if (train.remat_save.empty()) {
    return b.input + b.attention_results + b.mlp_results;
  }
  if (saves("attention") && saves("mlp")) {
    return whole;
  }
  if (saves("attention") || saves("mlp")) {
    return b.input + b.middle + (saves("attention") ? b.attention : b.mlp);
  }
  const bool products = std::any_of(train.remat_save.begin(), train.remat_save.end(), [](const std::string& name) {
    return name.find("::") != std::string::npos;  // an operator: most are products
  });
  std::vector<std::string> names = train.remat_save;
  if (saves("qkv")) {
    names.insert(names.end(), {"q", "k", "v", "kv"});
  } else if (saves("k") || saves("v")) {
    names.emplace_back("kv");
  }
  return b.input + (products ? b.attention_results + b.mlp_results : sum_of(b, names));
}

/// Of a layer, as ActivationBytes has it.
struct LayerBytes {
  double kept = 0, passing = 0;
};

LayerBytes layer_bytes(const BlockBytes& b, const TrainConfig& train, std::int64_t layer, bool training) {
  if (!training) {
    return {0, b.input + std::max(b.attention, b.mlp) + b.passing / 2};
  }
  const double kept = kept_of(b, train, layer);
  return {kept, b.input + b.attention + b.middle + b.mlp - kept + b.passing};
}

}  // namespace

ActivationBytes activation_bytes(const Config& config, double rows, double length, bool training, const std::vector<AdaptedLayer>& adapters,
                                 const Spread& spread) {
  const ModelConfig& m = config.model;
  const Sizes sizes(config, rows, length, adapters, spread);
  const std::int64_t ahead = spread.heads ? m.mtp_layers : 0;
  const std::int64_t end = (spread.end < 0 ? m.n_layers : spread.end) + ahead;
  ActivationBytes out;
  std::map<std::tuple<std::string_view, bool, bool>, LayerBytes> known;  // by what layers without adapters differ in
  for (std::int64_t layer = spread.first; layer < end; ++layer) {
    const std::int64_t like = std::min(layer, m.n_layers - 1);
    const auto at = std::make_tuple(std::string_view(layer_kind(m, like)), is_moe_layer(m, like), recomputes(config.train, like));
    const auto found = known.find(at);
    const LayerBytes own =
        found != known.end() && adapters.empty() ? found->second : layer_bytes(sizes.block(like), config.train, like, training);
    known[at] = own;
    out.kept += own.kept;
    out.passing = std::max(out.passing, own.passing);
    if (layer >= m.n_layers && training) {
      out.kept += 3 * sizes.low(sizes.dim());  // its two norms and their product
    }
  }
  if (!spread.heads) {
    return out;
  }
  const double times = 1 + static_cast<double>(m.mtp_layers);
  out.kept += training ? sizes.last_norm() * times : 0;
  out.logits = training ? sizes.logits() * times : sizes.logits_piece();
  return out;
}

double cache_bytes(const ModelConfig& m, double rows, double positions, double width) {
  double numbers = 0;  // of a position
  for (std::int64_t layer = 0; layer < m.n_layers; ++layer) {
    numbers += m.attention == "mla" ? real(m.mla_kv_rank + m.mla_rope_dim) : 2 * real(kv_heads(m, layer) * head_dim(m, layer));
  }
  return numbers * rows * positions * width;
}

}  // namespace kf::config
