#pragma once
// The objective of language models: the loss of the next token, with what stands beside it.

#include <cstdint>
#include <string>
#include <vector>

#include "train/step/loss.h"
#include "train/step/objective.h"
#include "train/step/piece_objective.h"

namespace kf {

struct LanguageOptions {
  double z_loss_weight = 0;
  std::int64_t mtp_layers = 0;
  double mtp_loss_weight = 0;
  Group* vocabulary = nullptr;  // over whom the rows of the model's head are divided (layout/parallelize.h); null: they lie here
};

/// ce (or a loss of one's own, which is minimised in its place), z_loss, aux_loss (the model's own terms), mtp_loss where there are layers
/// of multi-token prediction. It alone knows whether a loss takes logits or hidden states.
class Language final : public Objective, public PieceObjective {
 public:
  /// `loss` outlives it.
  explicit Language(const Loss& loss, const LanguageOptions& options = {}) : job_loss_(loss), loss_(&loss), options_(options) {}

  Counts count(const std::vector<Batch>& batches) const override;
  Minimised operator()(Model& model, const Micro& micro) const override;
  Minimised of_piece(Model& model, const Micro& micro) const override;
  bool spares_logits() const override { return job_loss_.takes_hidden(); }
  void check(Model& model) const override;
  /// "z_loss": train.z_loss_weight; "aux_loss": a factor of what the model adds.
  void set_weight(const std::string& term, double weight) override;
  void use_loss(const Loss* loss) override { loss_ = loss != nullptr ? loss : &job_loss_; }

  /// What `set_weight` takes.
  static std::vector<std::string> weight_names();

 private:
  /// Whether the loss takes hidden states and the head: always, as long as the head is divided, or because it is cheaper here.
  bool takes_hidden(Model& model) const;
  LossTerms from_hidden(Model& model, const Micro& micro, const LossFactors& factors) const;
  LossTerms from_logits(Model& model, const Micro& micro, const LossFactors& factors) const;
  /// Of parts that may be undefined; the names are the same for all micro-batches and pieces.
  std::vector<Term> terms_of(const Micro& micro, const LossTerms& parts, const at::Tensor& aux, const at::Tensor& ahead) const;
  at::Tensor aux_loss(Model& model, const Micro& micro, at::Tensor& total) const;
  at::Tensor mtp_loss(Model& model, const Micro& micro) const;
  bool looks_ahead() const { return options_.mtp_layers > 0 && options_.mtp_loss_weight > 0; }

  const Loss& job_loss_;
  const Loss* loss_;
  LanguageOptions options_;
  double aux_factor_ = 1;
};

}  // namespace kf
