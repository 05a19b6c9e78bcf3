#include "train/step/language.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "core/error.h"
#include "core/log.h"
#include "core/trace.h"
#include "metrics/names/names.h"
#include "model/layer/visibility.h"
#include "model/observe.h"
#include "train/step/look_ahead.h"
#include "train/step/losses.h"
#include "train/step/source_losses.h"

namespace kf {
namespace {

constexpr std::int64_t kPiece = 4096;  // positions whose cross entropy is taken at a time, beside a loss of one's own

at::Tensor number(const at::Tensor& term) { return term.defined() ? term.detach() : term; }

}  // namespace

Counts Language::count(const std::vector<Batch>& batches) const {
  Counts counts;
  for (const Batch& batch : batches) {
    counts.labels += batch.counted;
    counts.positions += batch.tokens.numel();
  }
  counts.ahead = looks_ahead() ? count_ahead(batches, options_.mtp_layers) : 0;
  return counts;
}

void Language::check(Model& model) const {
  if (options_.vocabulary != nullptr && !job_loss_.takes_divided_head()) {
    log::info(
        "the loss of this job looks at logits, which every rank along tp puts together from the parts of the head that the ranks have");
  }
  KF_CHECK(!job_loss_.takes_hidden() || model.head().has_value(), Code::config,
           "train.loss_fn = \"fused_linear_cross_entropy\" needs a model that gives its hidden state and its head away; this one does not: "
           "use \"cross_entropy\" or \"chunked_cross_entropy\"");
}

std::vector<std::string> Language::weight_names() { return {"z_loss", "aux_loss"}; }

void Language::set_weight(const std::string& term, double weight) {
  if (term == "z_loss") {
    options_.z_loss_weight = weight;
  } else if (term == "aux_loss") {
    aux_factor_ = weight;
  } else {
    fail(Code::other, "no term of the loss has a weight '{}'", term);
  }
}

bool Language::takes_hidden(Model& model) const {
  if (loss_->prefers_hidden() && observation_count == 0) {
    const std::optional<OutputHead> head = model.head();
    if (head.has_value() && head->weight.is_cpu()) {
      return true;
    }
  }
  return loss_->takes_hidden() || (options_.vocabulary != nullptr && loss_->takes_divided_head() && model.head().has_value());
}

LossTerms Language::from_hidden(Model& model, const Micro& micro, const LossFactors& factors) const {
  const std::int64_t length = micro.batch.tokens.size(1);
  const at::Tensor hidden = model.hidden(micro.batch.tokens, micro.forward).flatten(0, 1);  // (N, C)
  if (micro.source_losses != nullptr) {
    micro.source_losses->add(micro.batch, [&](std::int64_t row, const at::Tensor& own) {
      return loss_->from_hidden(hidden.detach().narrow(0, row * length, length), *model.head(), own, {1, 0, factors.vocabulary}).ce;
    });
  }
  const TraceRange range(TraceKind::layer, "loss");
  return loss_->from_hidden(hidden, *model.head(), micro.batch.labels.flatten(), factors);
}

LossTerms Language::from_logits(Model& model, const Micro& micro, const LossFactors& factors) const {
  const std::int64_t length = micro.batch.tokens.size(1);
  const at::Tensor logits = model.forward(micro.batch.tokens, micro.forward).flatten(0, 1);  // (N, V)
  if (micro.source_losses != nullptr) {
    micro.source_losses->add(
        micro.batch, [&](std::int64_t row, const at::Tensor& own) { return plain_ce_sum(logits.narrow(0, row * length, length), own); });
  }
  const TraceRange range(TraceKind::layer, "loss");
  const at::Tensor minimised = loss_->sum_of(logits, micro.batch) / (static_cast<double>(micro.all.labels) / micro.scale);
  LossTerms parts;
  parts.ce = minimised;
  if (!loss_->own_name().empty()) {
    parts.own = minimised;
    const at::NoGradGuard no_grad;  // a piece at a time: the loss's own graph holds enough
    parts.ce = ChunkedCrossEntropy(kPiece).sum(logits.detach(), micro.batch.labels.flatten()) * factors.ce;
  }
  parts.total = minimised;
  if (factors.z > 0) {
    parts.z_loss = z_loss_sum(logits) * factors.z;
    parts.total = parts.total + parts.z_loss;
  }
  return parts;
}

/// The model's terms are means over this micro-batch's positions: their share of the step's mean, added to `total`.
at::Tensor Language::aux_loss(Model& model, const Micro& micro, at::Tensor& total) const {
  at::Tensor sum;
  const AuxLosses aux = model.aux_losses(*micro.forward.results);
  for (const at::Tensor& term : {aux.balance, aux.router_z}) {
    if (term.defined()) {
      const at::Tensor share =
          term * (aux_factor_ * micro.scale * static_cast<double>(micro.batch.tokens.numel()) / static_cast<double>(micro.all.positions));
      total = total.defined() ? total + share : share;
      sum = sum.defined() ? sum + share.detach() : share.detach();
    }
  }
  return sum;
}

/// Weighted.
at::Tensor Language::mtp_loss(Model& model, const Micro& micro) const {
  // Pooled: every label of every depth weighs the same (DeepSeek V3, equation 25, divides by depths of equal counts).
  const double factor = micro.scale * options_.mtp_loss_weight / static_cast<double>(std::max<std::int64_t>(1, micro.all.ahead));
  const std::vector<at::Tensor>& ahead = micro.forward.results->ahead;
  const SequencePart* const part = micro.forward.positions.defined() ? micro.forward.visible->part() : nullptr;
  at::Tensor sum = at::zeros({}, micro.batch.tokens.options().dtype(at::kFloat));
  for (std::size_t depth = 0; depth < ahead.size(); ++depth) {
    const auto further = static_cast<std::int64_t>(depth) + 1;
    const at::Tensor labels = (part != nullptr ? labels_ahead(*part, further) : labels_ahead(micro.batch, further)).flatten();
    sum = sum + (takes_hidden(model)
                     ? loss_->from_hidden(ahead[depth].flatten(0, 1), *model.head(), labels, {factor, 0, options_.vocabulary}).total
                     : loss_->sum(model.project(ahead[depth]).flatten(0, 1), labels) * factor);
  }
  return sum;
}

Minimised Language::operator()(Model& model, const Micro& micro) const {
  micro.forward.looks_ahead = looks_ahead();
  const LossFactors factors{micro.scale / static_cast<double>(micro.all.labels),
                            micro.scale * options_.z_loss_weight / static_cast<double>(micro.all.positions), options_.vocabulary};
  const LossTerms parts = takes_hidden(model) ? from_hidden(model, micro, factors) : from_logits(model, micro, factors);
  Minimised out;
  out.total = parts.total;
  at::Tensor ahead;
  if (!micro.forward.results->ahead.empty()) {
    ahead = mtp_loss(model, micro);
    out.total = out.total + ahead;
  }
  const at::Tensor aux = aux_loss(model, micro, out.total);
  out.terms = terms_of(micro, parts, aux, ahead);
  return out;
}

Minimised Language::of_piece(Model& model, const Micro& micro) const {
  Minimised out;
  const at::Tensor aux = aux_loss(model, micro, out.total);
  out.terms = terms_of(micro, {}, aux, {});
  return out;
}

std::vector<Term> Language::terms_of(const Micro& micro, const LossTerms& parts, const at::Tensor& aux, const at::Tensor& ahead) const {
  const std::string own = loss_->own_name();
  std::vector<Term> out;
  out.push_back({"ce", number(parts.ce), own.empty()});
  if (!own.empty()) {
    out.push_back({row_key::of(row_key::own_loss, own), number(parts.own)});
  }
  out.push_back({"z_loss", number(parts.z_loss)});
  out.push_back({"aux_loss", aux});
  if (options_.mtp_layers > 0 && (micro.all.ahead > 0 || !looks_ahead())) {  // no mean over no label
    out.push_back({row_key::mtp_loss, number(ahead)});
  }
  return out;
}

}  // namespace kf
