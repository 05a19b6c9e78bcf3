#include "model/transformer.h"

#include <ATen/ATen.h>

#include "config/derived.h"
#include "core/error.h"
#include "registry/registries.h"

namespace kf {
namespace {

/// A plain folder of modules: "token_embedding", "layers", "output_head".
class Group final : public Module {
 public:
  using Module::add_child;
  using Module::add_parameter;
};

std::shared_ptr<Norm> make_norm(const PartArgs& args) {
  const config::ModelConfig& m = args.config.model;
  const auto& entry = args.registries.norm.get(m.norm_type);
  const PartArgs own{args.config, Registries::options_of(args.config, "norm", m.norm_type), args.registries};
  return entry.factory(own, m.dim, m.norm_eps);
}

std::shared_ptr<Mlp> make_mlp(const PartArgs& args) {
  const config::ModelConfig& m = args.config.model;
  const std::string name = config::mlp_name(m.activation);
  const auto& entry = args.registries.mlp.get(name);
  const PartArgs own{args.config, Registries::options_of(args.config, "mlp", name), args.registries};
  return entry.factory(own, m.dim, config::ffn_hidden_dim(m));
}

std::shared_ptr<Block> make_block(const PartArgs& args, std::int64_t layer, const std::shared_ptr<const Rope>& rope) {
  const config::ModelConfig& m = args.config.model;
  AttentionOptions options;
  options.dim = m.dim;
  options.n_heads = m.n_heads;
  options.n_kv_heads = config::kv_heads(m);
  options.head_dim = config::head_dim(m);
  options.layer = layer;
  options.n_layers = m.n_layers;
  options.init_std = m.init_std;
  options.qk_norm = m.qk_norm;
  options.norm_eps = m.norm_eps;
  return std::make_shared<Block>(make_norm(args), std::make_shared<Attention>(options, rope), make_norm(args), make_mlp(args));
}

}  // namespace

Block::Block(std::shared_ptr<Norm> attention_norm, std::shared_ptr<Attention> attention, std::shared_ptr<Norm> mlp_norm,
             std::shared_ptr<Mlp> mlp)
    : attention_norm_(add_child("attention_norm", std::move(attention_norm))),
      attention_(add_child("attention", std::move(attention))),
      mlp_norm_(add_child("mlp_norm", std::move(mlp_norm))),
      mlp_(add_child("mlp", std::move(mlp))) {}

at::Tensor Block::forward(const at::Tensor& x, const ForwardContext& context) const {
  const at::Tensor h = x + attention_->forward(attention_norm_->forward(x), context);
  return h + mlp_->forward(mlp_norm_->forward(h));
}

Transformer::Transformer(const PartArgs& args) {
  const config::ModelConfig& m = args.config.model;
  KF_CHECK(m.num_experts == 0, Code::config, "model.num_experts = {}: mixtures of experts are not built yet; use num_experts = 0",
           m.num_experts);
  n_kv_heads_ = config::kv_heads(m);
  head_dim_ = config::head_dim(m);
  max_seq_len_ = m.max_seq_len;

  const auto embedding = std::make_shared<Group>();
  embedding_ = embedding->add_parameter("embedding.weight", {m.vocab_size, m.dim}, Init::normal(m.init_std), Role::embedding);
  add_child("token_embedding", embedding);

  const auto rope = std::make_shared<const Rope>(head_dim_, m.max_seq_len, m.rope_theta);
  const auto layers = std::make_shared<Group>();
  for (std::int64_t layer = 0; layer < m.n_layers; ++layer) {
    blocks_.push_back(layers->add_child(std::to_string(layer), make_block(args, layer, rope)));
  }
  add_child("layers", layers);

  norm_ = add_child("norm", make_norm(args));
  head_ = m.tie_embeddings ? std::make_shared<Linear>(embedding_)
                           : std::make_shared<Linear>(m.dim, m.vocab_size, Init::normal(m.init_std), Role::head);
  const auto head = std::make_shared<Group>();
  head->add_child("proj", head_);
  add_child("output_head", head);
}

at::Tensor Transformer::forward(const at::Tensor& tokens, ForwardContext& context) {
  const std::int64_t past = context.cache != nullptr ? context.cache->filled : 0;
  KF_CHECK(past + tokens.size(1) <= max_seq_len_, Code::config, "{} positions exceed model.max_seq_len ({})", past + tokens.size(1),
           max_seq_len_);
  if (context.doc_ids.defined()) {
    KF_CHECK(context.cache == nullptr, Code::other, "document ids and a key-value cache exclude each other");
    context.mask = document_mask(context.doc_ids);
  }
  const auto observe = [&](const std::string& name, const at::Tensor& value) {
    if (context.observe) {
      context.observe(name, value);
    }
  };

  at::Tensor h = at::embedding(embedding_->value, tokens);  // (B, T, C)
  observe("embed", h);
  for (std::size_t layer = 0; layer < blocks_.size(); ++layer) {
    h = blocks_[layer]->forward(h, context);
    observe("layer." + std::to_string(layer), h);
  }
  if (context.cache != nullptr) {
    context.cache->filled += tokens.size(1);
  }
  h = norm_->forward(h);
  observe("norm", h);
  return head_->forward(h);  // (B, T, V)
}

KvCache Transformer::make_cache(std::int64_t batch, std::int64_t capacity) {
  KF_CHECK(capacity <= max_seq_len_, Code::config, "{} positions exceed model.max_seq_len ({})", capacity, max_seq_len_);
  KvCache cache;
  cache.capacity = capacity;
  for (std::size_t layer = 0; layer < blocks_.size(); ++layer) {
    const at::Tensor empty = at::zeros({batch, n_kv_heads_, capacity, head_dim_}, embedding_->value.options().requires_grad(false));
    cache.layers.push_back({empty, empty.clone()});
  }
  return cache;
}

at::Tensor document_mask(const at::Tensor& doc_ids) {
  const std::int64_t length = doc_ids.size(1);
  const at::Tensor same = doc_ids.unsqueeze(2).eq(doc_ids.unsqueeze(1));  // (B, T, T)
  return same.logical_and(at::ones({length, length}, same.options()).tril()).unsqueeze(1);
}

}  // namespace kf
