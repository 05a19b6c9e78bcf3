#include "model/pipelined_model.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace kf {

PipelinedModel::PipelinedModel(std::shared_ptr<Model> whole, const config::Config& config, const World& world, std::vector<Piece> pieces)
    : whole_(add_child("", std::move(whole))),
      staged_(dynamic_cast<Staged*>(whole_.get())),
      settings_(config.distributed),
      dim_(config.model.dim),
      vocab_(config.model.vocab_size),
      ranks_(world.along(Axis::pp)),
      data_(world.data()),
      pieces_(std::move(pieces)) {
  KF_CHECK(
      staged_ != nullptr, Code::config,
      "distributed.pp = {} needs a model that can run in pieces, and model.model_type = \"{}\" cannot; use \"transformer\", or another "
      "axis",
      settings_.pp, config.model.model_type);
  const std::int64_t last = ranks_.size() - 1;
  if (ranks_.rank() == 0 || ranks_.rank() == last) {
    ends_ = ranks_.part("pipeline_ends", {0, last});
  }
  if (auto* const joins = dynamic_cast<JoinsStages*>(book())) {
    joins->join_over(ranks_);
  }
}

std::vector<Piece> PipelinedModel::own_pieces() const {
  std::vector<Piece> out;
  for (std::size_t piece = 0; piece < pieces_.size(); ++piece) {
    if (rank_of(piece) == ranks_.rank()) {
      out.push_back(pieces_[piece]);
    }
  }
  return out;
}

std::vector<std::shared_ptr<Module>> PipelinedModel::unit_modules() const {
  std::vector<std::shared_ptr<Module>> out;
  for (const Piece& piece : own_pieces()) {
    const std::vector<std::shared_ptr<Module>> blocks = staged_->blocks_of(piece);
    out.insert(out.end(), blocks.begin(), blocks.end());
  }
  return out;
}

std::map<const Parameter*, std::vector<std::int64_t>> PipelinedModel::readers() const {
  std::map<const Parameter*, std::vector<std::int64_t>> out;
  for (std::size_t piece = 0; piece < pieces_.size(); ++piece) {
    for (const ParameterPtr& weight : staged_->weights_of(pieces_[piece])) {
      std::vector<std::int64_t>& ranks = out[weight.get()];
      const auto place = std::lower_bound(ranks.begin(), ranks.end(), rank_of(piece));
      if (place == ranks.end() || *place != rank_of(piece)) {
        ranks.insert(place, rank_of(piece));
      }
    }
  }
  return out;
}

void PipelinedModel::divide() {
  const auto all = readers();
  const std::vector<std::int64_t> ends{0, ranks_.size() - 1};
  like_ = &like_hidden(staged_->weights_of(own_pieces().front()));
  copies_.clear();
  counted_.clear();
  for (const ParameterPtr& weight : parameters()) {
    const auto found = all.find(weight.get());
    KF_CHECK(found != all.end(), Code::other, "no piece of the pipeline reads {}", weight->name);
    const std::vector<std::int64_t>& ranks = found->second;
    KF_CHECK(ranks.size() == 1 || ranks == ends, Code::other, "{} is read by {} ranks of the pipeline", weight->name, ranks.size());
    if (ranks.front() == ranks_.rank()) {
      counted_.insert(weight.get());
    }
    if (std::find(ranks.begin(), ranks.end(), ranks_.rank()) == ranks.end()) {
      if (!weight->shape.empty()) {
        Shape rows(static_cast<std::size_t>(ranks_.size()), 0);
        rows[static_cast<std::size_t>(ranks.front())] = weight->shape[0];
        weight->placement.cuts = {{Axis::pp, 0, std::move(rows), ranks_.rank()}};
      }
    } else if (ranks.size() > 1) {
      copies_.push_back(weight);
    }
  }
  std::sort(copies_.begin(), copies_.end(), [](const ParameterPtr& a, const ParameterPtr& b) { return a->name < b->name; });
}

bool PipelinedModel::is_copied(const Parameter& weight) const {
  return std::any_of(copies_.begin(), copies_.end(), [&](const ParameterPtr& copy) { return copy.get() == &weight; });
}

void PipelinedModel::join_gradients() {
  if (ends_ == nullptr || copies_.empty()) {
    return;
  }
  const at::NoGradGuard no_grad;
  const at::Tensor any = at::zeros({static_cast<std::int64_t>(copies_.size())}, at::kByte);
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    any.mutable_data_ptr<std::uint8_t>()[i] = copies_[i]->gradient().defined() ? 1 : 0;
  }
  ends_->largest(any);
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    Parameter& weight = *copies_[i];
    if (any.const_data_ptr<std::uint8_t>()[i] == 0 || weight.part_numel() == 0) {
      continue;  // the part is the same on both ranks
    }
    if (!weight.gradient().defined()) {
      if (weight.placement.rows() == nullptr) {
        weight.zero_gradient();
      } else {
        weight.part_gradient =
            at::zeros(weight.placement.of(weight.shape).size, weight.value.options().requires_grad(false).dtype(weight.sum_type));
      }
    }
    const at::Tensor own = weight.gradient();
    const at::Tensor sum = own.to(at::kFloat).contiguous();
    ends_->sum(sum);
    if (!sum.is_same(own)) {
      own.copy_(sum);
    }
  }
}

at::Tensor PipelinedModel::room_for(std::int64_t sequences, std::int64_t length, bool cached) const {
  return at::empty({sequences, staged_->positions_between(length, cached), dim_}, hidden_options());
}

at::TensorOptions PipelinedModel::hidden_options() const { return like_->value.options().requires_grad(false); }

void PipelinedModel::through(const at::Tensor& tokens, ForwardContext& context, const std::function<void(Model& tail)>& last) {
  const at::NoGradGuard no_grad;
  const std::int64_t past = context.cache != nullptr ? context.cache->filled : 0;
  for (std::size_t piece = 0; piece < pieces_.size(); ++piece) {
    if (rank_of(piece) != ranks_.rank()) {
      continue;
    }
    at::Tensor in = tokens;
    if (piece > 0) {
      in = room_for(tokens.size(0), tokens.size(1), context.cache != nullptr);
      ranks_.receive(in, rank_of(piece - 1));
    }
    if (context.cache != nullptr) {
      context.cache->filled = past;  // each piece goes on from there
    }
    if (piece + 1 == pieces_.size()) {
      Tail tail(*this, in);
      last(tail);
    } else {
      ranks_.send(staged_->run_piece(pieces_[piece], in, tokens, context).contiguous(), rank_of(piece + 1));
    }
  }
  if (context.cache != nullptr) {
    context.cache->filled = past + tokens.size(1);
  }
}

at::Tensor PipelinedModel::forward(const at::Tensor& tokens, ForwardContext& context) {
  KF_CHECK(!at::GradMode::is_enabled(), Code::config,
           "a forward through the stages of a pipeline has no gradients (distributed.pp = {}): training goes by micro-batches",
           settings_.pp);
  at::Tensor logits;
  through(tokens, context, [&](Model& tail) { logits = tail.forward(tokens, context).contiguous(); });
  // What type the head gives is its own matter (model.logits_dtype).
  const std::string type = ranks_.tell(logits.defined() && logits.scalar_type() == at::kFloat ? "fp32" : "").back();
  if (!logits.defined()) {
    const at::TensorOptions own = hidden_options();
    logits = at::empty({tokens.size(0), tokens.size(1), vocab_}, type == "fp32" ? own.dtype(at::kFloat) : own);
  }
  ranks_.broadcast(logits, ranks_.size() - 1);
  return logits;
}

at::Tensor PipelinedModel::last_logits(const at::Tensor& tokens, ForwardContext& context) {
  at::Tensor logits;
  through(tokens, context, [&](Model& tail) {
    const std::int64_t last = tokens.size(1) - 1;
    const at::Tensor z = tail.head() ? tail.project(tail.hidden(tokens, context).narrow(1, last, 1)).select(1, 0)
                                     : tail.forward(tokens, context).select(1, last);
    logits = z.to(at::kFloat).contiguous();
  });
  if (!logits.defined()) {
    logits = at::empty({tokens.size(0), vocab_}, hidden_options().dtype(at::kFloat));
  }
  ranks_.broadcast(logits, ranks_.size() - 1);
  return logits;
}

KvCache PipelinedModel::make_cache(std::int64_t batch, std::int64_t capacity) { return staged_->cache_of(own_pieces(), batch, capacity); }

Tail::Tail(const PipelinedModel& model, at::Tensor in) : model_(model), in_(std::move(in)) { share_loss_with(&model.data()); }

at::Tensor Tail::hidden(const at::Tensor& tokens, ForwardContext& context) {
  return model_.staged().run_piece(model_.pieces().back(), in_, tokens, context);
}

PipelinedModel* as_pipeline(Model& model) { return dynamic_cast<PipelinedModel*>(&model); }

bool lies_here(const Parameter& weight) { return weight.placement.cuts.empty() || weight.placement.cuts.front().axis != Axis::pp; }

}  // namespace kf
