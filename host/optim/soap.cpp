#include "optim/soap.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <tuple>

#include "core/error.h"
#include "core/log.h"
#include "model/expert_stack.h"
#include "optim/group_optimizer.h"

namespace kf {
namespace {

enum Slot : std::size_t { kM, kV, kLeft, kRight, kLeftBasis, kRightBasis };

/// The shape of a square matrix for one side of a weight; (0) for sides without one.
std::vector<std::int64_t> side_shape(const Parameter& parameter, std::int64_t from_end, std::int64_t max_dim) {
  const auto dims = static_cast<std::int64_t>(parameter.shape.size());
  const bool vector = own_dims(parameter).size() < 2;
  const std::int64_t side = vector ? 0 : parameter.shape[static_cast<std::size_t>(dims - from_end)];
  if (side == 0 || side > max_dim) {
    return {0};
  }
  return dims == 3 ? std::vector<std::int64_t>{parameter.master.size(0), side, side} : std::vector<std::int64_t>{side, side};
}

std::vector<Slots::Kind> kinds(std::int64_t max_dim) {
  const auto side = [max_dim](std::int64_t from_end) {
    return [from_end, max_dim](const Parameter& parameter) { return side_shape(parameter, from_end, max_dim); };
  };
  const auto square = [&](const char* name, std::int64_t from_end) {
    return Slots::Kind{name, Slots::Start::zeros, at::kFloat, side(from_end)};
  };
  return {{"exp_avg"}, {"exp_avg_sq"}, square("left", 2), square("right", 1), square("left_basis", 2), square("right_basis", 1)};
}

bool has(const at::Tensor& side) { return side.numel() > 0; }

/// Q_L^T x Q_R.
at::Tensor into_bases(const at::Tensor& x, const std::vector<at::Tensor>& mine) {
  const at::Tensor left = has(mine[kLeftBasis]) ? mine[kLeftBasis].mT().matmul(x) : x;
  return has(mine[kRightBasis]) ? left.matmul(mine[kRightBasis]) : left;
}

/// Q_L x Q_R^T.
at::Tensor out_of_bases(const at::Tensor& x, const std::vector<at::Tensor>& mine) {
  const at::Tensor left = has(mine[kLeftBasis]) ? mine[kLeftBasis].matmul(x) : x;
  return has(mine[kRightBasis]) ? left.matmul(mine[kRightBasis].mT()) : left;
}

/// Eigenvectors in columns, the largest eigenvalue first. Statistics of few tokens have many eigenvalues of 0, at which LAPACK in fp32
/// fails or, worse, gives no numbers; in double it seldom does (seen with AVX2 and two threads), and then the singular vectors, which are
/// the same of such a matrix, are found by another algorithm. This is done once a weight.
at::Tensor eigenvectors(const at::Tensor& symmetric) {
  const at::Tensor wide = symmetric.to(at::kDouble);
  try {
    return std::get<1>(at::linalg_eigh(wide)).flip({-1}).to(symmetric.scalar_type());
  } catch (const c10::LinAlgError&) {
    log::info("soap: the eigenvectors of statistics of {} x {} did not converge; their singular vectors are taken, which are the same",
              wide.size(-2), wide.size(-1));
    return std::get<0>(at::linalg_svd(wide)).to(symmetric.scalar_type());
  }
}

/// One step of power iteration from `basis`; `moment`, squared gradients in these bases, is sorted alike along `dim`.
void iterate(at::Tensor& basis, const at::Tensor& statistics, at::Tensor& moment, std::int64_t dim) {
  const at::Tensor product = statistics.matmul(basis);
  const at::Tensor order = (basis * product).sum(-2).argsort(-1, /*descending=*/true);  // (.., side)
  const at::Tensor columns = order.unsqueeze(-2).expand_as(product);
  basis.copy_(std::get<0>(at::linalg_qr(product.gather(-1, columns))));
  moment.copy_(moment.gather(dim, order.unsqueeze(dim == -1 ? -2 : -1).expand_as(moment)));
}

}  // namespace

const config::OwnFields<SoapOptions>& soap_fields() {
  using config::field;
  static const config::OwnFields<SoapOptions> fields{
      field("frequency", &SoapOptions::frequency, config::at_least(1), "Updates between two refreshes of the bases."),
      field("max_dim", &SoapOptions::max_dim, config::at_least(1), "Longest side of a matrix that gets a basis."),
  };
  return fields;
}

Soap::Soap(std::vector<ParamGroup> groups, const SoapOptions& options)
    : groups_(std::move(groups)), options_(options), slots_(kinds(options.max_dim)) {}

void Soap::refresh(std::vector<at::Tensor>& mine, const at::Tensor& gradient, std::int64_t step) const {
  const auto side = [&](Slot statistics, Slot basis, const at::Tensor& product, std::int64_t dim) {
    mine[statistics].lerp_(product, 1 - options_.beta2);
    if (step == 0) {
      mine[basis].copy_(eigenvectors(mine[statistics]));
    } else if (step % options_.frequency == 0) {
      iterate(mine[basis], mine[statistics], mine[kV], dim);
    }
  };
  if (has(mine[kLeft])) {
    side(kLeft, kLeftBasis, gradient.matmul(gradient.mT()), -2);
  }
  if (has(mine[kRight])) {
    side(kRight, kRightBasis, gradient.mT().matmul(gradient), -1);
  }
}

void Soap::update(const Parameter& parameter, std::int64_t step, double lr, double weight_decay) {
  const at::Tensor gradient = parameter.wide_gradient();
  std::vector<at::Tensor>& mine = slots_.of(parameter);
  if (step == 0) {
    refresh(mine, gradient, step);
    return;
  }
  at::Tensor &m = mine[kM], &v = mine[kV];
  m.lerp_(gradient, 1 - options_.beta1);
  v.lerp_(into_bases(gradient, mine).square(), 1 - options_.beta2);
  const at::Tensor direction = out_of_bases(into_bases(m, mine) / (v.sqrt() + options_.eps), mine);
  const auto t = static_cast<double>(step);
  const double correction = std::sqrt(1 - std::pow(options_.beta2, t)) / (1 - std::pow(options_.beta1, t));
  const at::Tensor stored = parameter.master.detach();
  const at::Tensor master = stored.to(at::kFloat);  // the same tensor, but for bf16 weights
  master.add_(direction, -lr * correction).mul_(1 - lr * weight_decay);
  if (!master.is_same(stored)) {
    stored.copy_(master);
  }
  refresh(mine, gradient, step);
}

void Soap::step(double lr) {
  const at::NoGradGuard no_grad;
  for (const ParamGroup& group : groups_) {
    for (const ParameterPtr& parameter : group.parameters) {
      if (parameter->gradient().defined()) {
        update(*parameter, steps_[parameter->name]++, lr, group.weight_decay);
      }
    }
  }
}

OptimizerState Soap::state() const {
  OptimizerState state;
  slots_.save(state);
  for (const auto& [name, step] : steps_) {
    state.integers["soap_step." + name] = step;
  }
  return state;
}

void Soap::load(const OptimizerState& state) {
  slots_.load(state, groups_);
  steps_.clear();
  for (const ParamGroup& group : groups_) {
    for (const ParameterPtr& parameter : group.parameters) {
      if (slots_.contains(*parameter)) {
        const auto found = state.integers.find("soap_step." + parameter->name);
        KF_CHECK(found != state.integers.end(), Code::checkpoint, "the optimizer state lacks 'soap_step.{}'", parameter->name);
        steps_[parameter->name] = found->second;
      }
    }
  }
}

}  // namespace kf
