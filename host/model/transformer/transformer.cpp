#include "model/transformer/transformer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "config/plan/derived.h"
#include "core/error.h"
#include "core/trace.h"
#include "model/init.h"
#include "model/layer/place.h"
#include "model/layer/rope.h"
#include "model/layer/visibility.h"
#include "model/layer/vocabulary.h"
#include "model/observe.h"
#include "model/transformer/parts.h"
#include "model/weight_unit.h"
#include "registry/registries.h"

namespace kf {
namespace {

/// The tokens k further on, also where other ranks have them.
at::Tensor seen_ahead(const at::Tensor& tokens, std::int64_t k, const ForwardContext& context) {
  const SequencePart* const part = context.visible->part();
  return part != nullptr ? own_positions(tokens_ahead(part->tokens, k), 1, *part) : tokens_ahead(tokens, k);
}

/// Makes `context.visible` for `fresh` positions, unless they are a part of longer sequences, whose visibility came with them. Throws
/// Code::config for more than `most`.
void see(ForwardContext& context, std::int64_t fresh, at::Device device, std::int64_t most) {
  const std::int64_t past = context.cache != nullptr ? context.cache->filled : 0;
  const SequencePart* const part = context.positions.defined() ? context.visible->part() : nullptr;
  const std::int64_t length = part != nullptr ? part->cut.length() : past + fresh;
  KF_CHECK(length <= most, Code::config, "{} positions exceed model.max_seq_len ({})", length, most);
  KF_CHECK(!context.doc_ids.defined() || context.cache == nullptr, Code::other, "document ids and a key-value cache exclude each other");
  if (part == nullptr) {
    const at::Tensor starts = context.cache != nullptr ? context.cache->starts : at::Tensor();
    context.visible = context.doc_ids.defined() ? std::make_shared<const Visibility>(context.doc_ids)
                                                : std::make_shared<const Visibility>(past, fresh, device, starts, context.lengths);
  }
}

/// A plain folder of modules: "token_embedding", "layers", "output_head".
class Folder final : public Module {
 public:
  using Module::add_child;
  using Module::add_parameter;
};

}  // namespace

Transformer::Transformer(const PartArgs& args) : Transformer(args, config::whole_stage(args.config.model)) {}

Transformer::Transformer(const PartArgs& args, const config::Stage& stage)
    : stage_(stage),
      ranks_(args),
      drop_embed_(args.config.model.dropout_embed, args.config.train.seed, -1, "embed"),
      max_seq_len_(args.config.model.max_seq_len) {
  const config::ModelConfig& m = args.config.model;
  ranks_.share_of(m.vocab_size, "entries of the vocabulary (model.vocab_size)");
  KF_CHECK(m.mtp_layers == 0 || (stage.embeds && stage.heads), Code::config,
           "model.mtp_layers = {} needs the whole model in one stage: the layers that look ahead read the embedding and the head",
           m.mtp_layers);
  if (stage.embeds) {
    add_embedding(args);
  } else if (stage.heads && m.tie_embeddings) {
    embedding_ = add_vocabulary(args);
  }
  Place place{stage.first, m.dim, 0, std::make_shared<RopeTables>()};
  const auto layers = std::make_shared<Folder>();
  for (; place.layer < stage.end; ++place.layer) {
    blocks_.push_back(layers->add_child(std::to_string(place.layer), make_block(args, place)));
    recompute_.push_back(recompute_policy(args.config.train, place.layer));
  }
  add_child("layers", layers);
  const auto mtp = std::make_shared<Folder>();
  for (std::int64_t depth = 0; depth < m.mtp_layers; ++depth) {
    mtp_.push_back(mtp->add_child(std::to_string(depth), std::make_shared<MtpLayer>(args, Place{m.n_layers - 1, m.dim, 0, place.ropes})));
  }
  add_child("mtp", mtp);
  if (stage.heads) {
    norm_ = add_child("norm", make_norm(args, {-1, m.dim, 0, nullptr}));
    add_head(args);
  }
  experts_ = std::make_unique<MoeBook>(*this);
}

ParameterPtr Transformer::add_table(const PartArgs& args, const std::string& name, std::int64_t rows) {
  const config::ModelConfig& m = args.config.model;
  const auto group = std::make_shared<Folder>();
  ParameterPtr weight = group->add_parameter("embedding.weight", {rows, m.dim}, embedding_init(m), Role::embedding);
  add_child(name, group);
  return weight;
}

ParameterPtr Transformer::add_vocabulary(const PartArgs& args) {
  ParameterPtr table = add_table(args, "token_embedding", args.config.model.vocab_size);
  table->split = Split::vocab;
  return table;
}

void Transformer::add_embedding(const PartArgs& args) {
  const config::ModelConfig& m = args.config.model;
  embedding_ = add_vocabulary(args);
  pad_id_ = m.pad_id.value_or(-1);
  embed_scale_ = m.embed_scale == 0 ? std::sqrt(static_cast<double>(m.dim)) : m.embed_scale;
  if (m.embed_norm) {
    embed_norm_ = add_child("embed_norm", make_norm(args, {-1, m.dim, 0, nullptr}));
  }
  if (m.pos_embedding == "learned") {
    positions_ = add_table(args, "position_embedding", m.max_seq_len);
    ranks_.between(*positions_);
  }
  sinusoidal_ = m.pos_embedding == "sinusoidal";
}

void Transformer::add_head(const PartArgs& args) {
  const config::ModelConfig& m = args.config.model;
  head_ = m.tie_embeddings ? std::make_shared<Linear>(embedding_)
                           : std::make_shared<Linear>(m.dim, m.vocab_size, hidden_init(m, m.dim), Role::head, m.head_bias);
  head_->split(Split::vocab, 1, ranks_);
  const auto head = std::make_shared<Folder>();
  head->add_child("proj", head_);
  add_child("output_head", head);
  logit_scale_ = m.logit_scale;
  logit_cap_ = m.final_logit_softcap;
  logits_precision_ = logits_precision(m.logits_dtype);
}

at::Tensor Transformer::embed(const at::Tensor& tokens, const ForwardContext& context) const {
  const TraceRange range(TraceKind::layer, "token_embedding");
  at::Tensor h = embedded(embedding_->value, tokens, pad_id_, ranks_, context);  // (B, T, C)
  if (embed_scale_ != 1) {
    h = h * embed_scale_;
  }
  if (embed_norm_) {
    h = embed_norm_->forward(h);
  }
  return ranks_.dropped(drop_embed_, add_positions(h, context), context, training());
}

at::Tensor Transformer::add_positions(const at::Tensor& h, const ForwardContext& context) const {
  if (!positions_ && !sinusoidal_) {
    return h;
  }
  const at::Tensor all = context.visible->positions();  // (B or 1, T)
  const TensorRanks::Rows mine = ranks_.rows(all.size(1), context);
  const at::Tensor positions = all.narrow(1, mine.begin, mine.count);
  return h + (positions_ ? at::embedding(positions_->value, positions) : sinusoids(positions, h.size(2)).to(h.scalar_type()));
}

void Transformer::look_ahead(at::Tensor h, const at::Tensor& tokens, const ForwardContext& context) const {
  for (std::size_t depth = 0; depth < mtp_.size(); ++depth) {
    const TraceRange range(TraceKind::layer, "mtp", static_cast<std::int64_t>(depth));
    h = mtp_[depth]->forward(h, embed(seen_ahead(tokens, static_cast<std::int64_t>(depth) + 1, context), context), context);
    context.results->ahead.push_back(ranks_.enter(norm_->forward(h), context));
  }
}

at::Tensor Transformer::wide_head(const at::Tensor& h) const {
  const at::Tensor z = head_product(h, {head_->weight()->value, 1, 0, logits_precision_});
  return observed(*head_, h, head_->bias() != nullptr ? z + head_->bias()->value.to(z.scalar_type()) : z);
}

at::Tensor Transformer::logits(const at::Tensor& h) const {
  const TraceRange range(TraceKind::layer, "output_head");
  const at::Tensor z = logits_precision_ == OutputHead::Precision::fp32 ? wide_head(h) : head_->forward(h);
  return ranks_.joined(shaped(z));
}

at::Tensor Transformer::shaped(const at::Tensor& z) const {
  const at::Tensor scaled = logit_scale_ != 1 ? z * logit_scale_ : z;
  return logit_cap_ > 0 ? at::tanh(scaled / logit_cap_) * logit_cap_ : scaled;
}

at::Tensor Transformer::forward(const at::Tensor& in, ForwardContext& context) {
  return stage_.heads ? logits(hidden(in, context)) : hidden(in, context);
}

std::optional<OutputHead> Transformer::head() {
  return head_ == nullptr || head_->bias() != nullptr
             ? std::nullopt
             : std::optional(OutputHead{head_->weight()->value, logit_scale_, logit_cap_, logits_precision_});
}

void Transformer::scale_queries(std::int64_t layer, const at::Tensor& factors) {
  blocks_.at(static_cast<std::size_t>(layer - stage_.first))->scale_queries(factors);
}

at::Tensor Transformer::run_block(std::size_t layer, const at::Tensor& h, const ForwardContext& context) const {
  const TraceRange range(TraceKind::layer, "layers", stage_.first + static_cast<std::int64_t>(layer));
  const Block& block = *blocks_[layer];
  if (block.unit() != nullptr) {
    return block.unit()->run(h, [&](const at::Tensor& x) { return run_whole_block(layer, x, context); });
  }
  return run_whole_block(layer, h, context);
}

at::Tensor Transformer::run_whole_block(std::size_t layer, const at::Tensor& h, const ForwardContext& context) const {
  const Block& block = *blocks_[layer];
  if (!recompute_[layer].block || !may_recompute(context, training())) {
    return block.forward(h, context);
  }
  return recompute(
      {[&block](const at::Tensor& x, const ForwardContext& inside) { return block.forward(x, inside); }, recompute_[layer].kept}, h,
      context);
}

at::Tensor Transformer::hidden(const at::Tensor& in, ForwardContext& context) { return run_piece(whole_piece(), in, in, context); }

at::Tensor Transformer::run_piece(const Piece& piece, const at::Tensor& in, const at::Tensor& tokens, ForwardContext& context) {
  see(context, tokens.size(1), in.device(), max_seq_len_);
  const auto observe = [&](const std::string& name, const at::Tensor& value) {
    if (context.observe) {
      context.observe(name, value);
    }
  };

  context.split_sequence = splits(context.cache != nullptr);
  at::Tensor h = in;
  if (piece.embeds) {
    h = embed(in, context);
    observe("embed", h);
  }
  for (std::int64_t layer = piece.first; layer < piece.end; ++layer) {
    h = run_block(static_cast<std::size_t>(layer - stage_.first), h, context);
    observe("layer." + std::to_string(layer), h);
  }
  if (context.cache != nullptr) {
    context.cache->filled += tokens.size(1);
  }
  if (piece.heads && context.looks_ahead && context.results != nullptr) {
    look_ahead(h, tokens, context);
  }
  if (!piece.heads) {
    return h;
  }
  const TraceRange range(TraceKind::layer, "norm");
  h = norm_->forward(h);
  observe("norm", h);
  return ranks_.enter(h, context);
}

std::int64_t Transformer::positions_between(std::int64_t length, bool cached) const {
  return splits(cached) ? even_rows(length, ranks_.size())[static_cast<std::size_t>(ranks_.rank())] : length;
}

ParameterList Transformer::weights_of(const Piece& piece) const {
  ParameterList out;
  const auto add = [&out](const Module& module) {
    for (const auto& [name, weight] : module.named_parameters()) {
      if (std::find(out.begin(), out.end(), weight) == out.end()) {
        out.push_back(weight);
      }
    }
  };
  for (const auto& [name, child] : children()) {
    const bool front = name == "token_embedding" || name == "position_embedding" || name == "embed_norm";
    if (name != "layers" && (front ? piece.embeds || (piece.heads && !mtp_.empty()) : piece.heads)) {
      add(*child);
    }
  }
  for (std::int64_t layer = piece.first; layer < piece.end; ++layer) {
    add(*block_at(layer));
  }
  return out;
}

std::vector<std::shared_ptr<Module>> Transformer::blocks_of(const Piece& piece) const {
  return {blocks_.begin() + (piece.first - stage_.first), blocks_.begin() + (piece.end - stage_.first)};
}

KvCache Transformer::make_cache(std::int64_t batch, std::int64_t capacity) { return cache_of({whole_piece()}, batch, capacity); }

KvCache Transformer::cache_of(const std::vector<Piece>& pieces, std::int64_t batch, std::int64_t capacity) {
  KF_CHECK(capacity <= max_seq_len_, Code::config, "{} positions exceed model.max_seq_len ({})", capacity, max_seq_len_);
  KvCache cache;
  cache.capacity = capacity;
  cache.layers.resize(static_cast<std::size_t>(pieces.back().end));  // layers find theirs by their number
  for (const Piece& piece : pieces) {
    const at::Tensor like = like_hidden(weights_of(piece)).value;
    for (std::int64_t layer = piece.first; layer < piece.end; ++layer) {
      cache.layers[static_cast<std::size_t>(layer)] = block_at(layer)->make_cache(batch, capacity, like);
    }
  }
  return cache;
}

bool Transformer::has_cache() const {
  return std::all_of(blocks_.begin(), blocks_.end(), [](const std::shared_ptr<Block>& block) { return block->has_cache(); });
}

bool Transformer::takes_padding() const {
  return std::all_of(blocks_.begin(), blocks_.end(), [](const std::shared_ptr<Block>& block) { return block->takes_padding(); });
}

bool Transformer::keeps_cache(std::int64_t length, std::int64_t longer) const {
  return std::all_of(blocks_.begin(), blocks_.end(),
                     [&](const std::shared_ptr<Block>& block) { return block->keeps_cache(length, longer); });
}

at::Tensor sinusoids(const at::Tensor& positions, std::int64_t dim) {
  const std::int64_t half = dim / 2;
  const double step = std::log(10000.0) / static_cast<double>(std::max<std::int64_t>(half - 1, 1));
  const at::Tensor rates = (at::arange(half, positions.options().dtype(at::kFloat)) * -step).exp();  // (half)
  const at::Tensor angles = positions.to(at::kFloat).unsqueeze(-1) * rates;                          // (.., T, half)
  return at::cat({angles.sin(), angles.cos()}, -1);
}

}  // namespace kf
