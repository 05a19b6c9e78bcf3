#pragma once
// A model whose pieces lie on the ranks of a pipeline.

#include <ATen/core/Tensor.h>
#include <c10/core/TensorOptions.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "config/schema/config.h"
#include "model/model.h"
#include "model/staged.h"
#include "parallel/world.h"

namespace kf {

/// Its modules and parameters are those of the whole model, so patterns of names, masks, counts and checkpoints mean the same on every
/// rank. Weights of pieces on other ranks are empty here (`divide`).
class PipelinedModel final : public Model {
 public:
  /// `whole` has no storage yet; piece s lies on rank s modulo the ranks of the pipeline. Made by all ranks at the same time; `world`
  /// outlives it. Throws Code::config for a model that cannot run in pieces.
  PipelinedModel(std::shared_ptr<Model> whole, const config::Config& config, const World& world, std::vector<Piece> pieces);

  /// Without a graph, one piece behind the other: logits, on every rank. Evaluation and generation have cheaper ways (`through`,
  /// `last_logits`).
  at::Tensor forward(const at::Tensor& tokens, ForwardContext& context) override;
  std::vector<std::shared_ptr<Module>> unit_modules() const override;
  StepBook* book() override { return whole_->book(); }
  void scale_queries(std::int64_t layer, const at::Tensor& factors) override { whole_->scale_queries(layer, factors); }
  KvCache make_cache(std::int64_t batch, std::int64_t capacity) override;
  bool has_cache() const override { return whole_->has_cache(); }
  bool takes_padding() const override { return whole_->takes_padding(); }
  bool keeps_cache(std::int64_t length, std::int64_t longer) const override { return whole_->keeps_cache(length, longer); }

  /// Runs the pieces of this rank, without a graph. On the rank that has the last one calls `last` with a model that is this one to a loss:
  /// it goes on from the hidden states that came (see `Tail`).
  void through(const at::Tensor& tokens, ForwardContext& context, const std::function<void(Model& tail)>& last);
  /// Of the last position, (B, V) fp32, on every rank.
  at::Tensor last_logits(const at::Tensor& tokens, ForwardContext& context);

  Model& whole() const { return *whole_; }
  Staged& staged() const { return *staged_; }
  const config::DistributedConfig& settings() const { return settings_; }
  Group& ranks() const { return ranks_; }
  Group& data() const { return data_; }
  bool has_head() const { return ranks_.rank() + 1 == ranks_.size(); }
  /// Of the whole model, and of this rank.
  const std::vector<Piece>& pieces() const { return pieces_; }
  std::vector<Piece> own_pieces() const;
  std::int64_t rank_of(std::size_t piece) const { return static_cast<std::int64_t>(piece) % ranks_.size(); }

  /// The ranks of the pipeline that read each weight, ascending.
  std::map<const Parameter*, std::vector<std::int64_t>> readers() const;
  /// Before the weights have storage: those that no piece of this rank reads are empty from now on.
  void divide();
  /// Behind `divide`: whether this rank is the first one that reads the weight, and so counts and saves it,
  bool counts(const Parameter& weight) const { return counted_.contains(&weight); }
  /// and whether the first and the last rank both hold it.
  bool is_copied(const Parameter& weight) const;
  /// Adds up the gradients of weights that two ranks hold: each has trained its copy with its own micro-batches' share. Both make the same
  /// update then, so the copies stay equal to the bit.
  void join_gradients();

  /// Where hidden states of `sequences` with `length` positions come in (Staged::positions_between); behind `divide`.
  at::Tensor room_for(std::int64_t sequences, std::int64_t length, bool cached = false) const;

 private:
  at::TensorOptions hidden_options() const;

  std::shared_ptr<Model> whole_;
  Staged* staged_;
  config::DistributedConfig settings_;
  std::int64_t dim_;
  std::int64_t vocab_;
  Group& ranks_;
  Group& data_;
  std::vector<Piece> pieces_;
  std::unique_ptr<Group> ends_;      // the first and the last rank; null on the others
  const Parameter* like_ = nullptr;  // a weight of the type of hidden states
  ParameterList copies_;             // held by both, in order of names
  std::set<const Parameter*> counted_;
};

/// The model from the last piece on: what a loss sees of it. Tokens are those of the micro-batch; what goes into the piece is given.
class Tail final : public Model {
 public:
  Tail(const PipelinedModel& model, at::Tensor in);
  at::Tensor forward(const at::Tensor& tokens, ForwardContext& context) override { return project(hidden(tokens, context)); }
  at::Tensor project(const at::Tensor& hidden) const override { return model_.whole().project(hidden); }
  StepBook* book() override { return model_.whole().book(); }
  at::Tensor hidden(const at::Tensor& tokens, ForwardContext& context) override;
  std::optional<OutputHead> head() override { return model_.whole().head(); }
  KvCache make_cache(std::int64_t batch, std::int64_t capacity) override { return model_.whole().make_cache(batch, capacity); }

 private:
  const PipelinedModel& model_;
  at::Tensor in_;
};

/// `model` as a pipeline; null where it is none.
PipelinedModel* as_pipeline(Model& model);

/// Whether this rank holds the weight. Of others it has no numbers: they lie in another piece of the pipeline.
bool lies_here(const Parameter& weight);

}  // namespace kf
