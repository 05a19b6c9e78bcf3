#include "optim/kron.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "model/expert_stack.h"
#include "model/seed.h"
#include "optim/group_optimizer.h"

namespace kf {
namespace {

enum Slot : std::size_t { kMomentum, kLeft, kRight };
constexpr std::int64_t kBalanceEvery = 100;
const double kTiny = static_cast<double>(std::numeric_limits<float>::min());  // as the authors' bf16 one

bool is_vector(const Parameter& p) { return own_dims(p).size() < 2; }

/// How a weight is seen: (E, m, n) matrices, one of them for a plain matrix; (E, 1, n) for vectors. Of the experts that this rank has.
std::vector<std::int64_t> stack_shape(const Parameter& p) {
  const std::int64_t stack = is_expert_stack(p) ? p.master.size(0) : 1;
  const std::int64_t rows = is_vector(p) ? 1 : p.shape[p.shape.size() - own_dims(p).size()];
  return {stack, rows, p.numel() / std::max<std::int64_t>(1, (is_expert_stack(p) ? p.shape[0] : 1) * rows)};
}

at::Tensor as_stack(const Parameter& p, const at::Tensor& x) { return x.reshape(stack_shape(p)); }

/// (E, side, side) triangles, or (E, side) diagonals.
std::vector<std::int64_t> factor_shape(const Parameter& p, std::size_t side, std::int64_t max_dim) {
  const std::vector<std::int64_t> all = stack_shape(p);
  const bool diagonal = is_vector(p) || all[side] > max_dim || all[side] == 1;
  return diagonal ? std::vector<std::int64_t>{all[0], all[side]} : std::vector<std::int64_t>{all[0], all[side], all[side]};
}

std::vector<Slots::Kind> kinds(std::int64_t max_dim) {
  const auto factor = [max_dim](const char* name, std::size_t side) {
    return Slots::Kind{name, Slots::Start::zeros, at::kFloat, [=](const Parameter& p) { return factor_shape(p, side, max_dim); }};
  };
  return {{"momentum"}, factor("left", 1), factor("right", 2)};
}

bool is_diagonal(const at::Tensor& q) { return q.dim() == 2; }

/// Factors start as the identity.
void start(at::Tensor& q) {
  if (is_diagonal(q)) {
    q.fill_(1);
  } else {
    q.copy_(at::eye(q.size(-1), q.options()).expand_as(q));
  }
}

/// Q x, x (E, m, n).
at::Tensor left_times(const at::Tensor& q, const at::Tensor& x) { return is_diagonal(q) ? q.unsqueeze(-1) * x : q.matmul(x); }
/// x Q^T.
at::Tensor times_right(const at::Tensor& x, const at::Tensor& q) { return is_diagonal(q) ? x * q.unsqueeze(-2) : x.matmul(q.mT()); }
/// Q^T x.
at::Tensor left_transposed_times(const at::Tensor& q, const at::Tensor& x) {
  return is_diagonal(q) ? q.unsqueeze(-1) * x : q.mT().matmul(x);
}
/// x Q.
at::Tensor times_right_plain(const at::Tensor& x, const at::Tensor& q) { return is_diagonal(q) ? x * q.unsqueeze(-2) : x.matmul(q); }

/// Q_l^-T v Q_r^-1.
at::Tensor unwhitened(const at::Tensor& v, const at::Tensor& left, const at::Tensor& right) {
  const at::Tensor half = is_diagonal(left) ? v / left.unsqueeze(-1) : at::linalg_solve_triangular(left.mT(), v, /*upper=*/false);
  return is_diagonal(right) ? half / right.unsqueeze(-2) : at::linalg_solve_triangular(right, half, /*upper=*/true, /*left=*/false);
}

/// A lower bound of the spectral norm of a symmetric matrix (E, side, side), as in the authors' program: (E, 1, 1).
at::Tensor norm_bound(const at::Tensor& a) {
  const at::Tensor largest = a.abs().amax({-2, -1}, /*keepdim=*/true);
  const at::Tensor scaled = a / largest.clamp_min(kTiny);
  const at::Tensor longest = scaled.square().sum(-1).argmax(-1).view({-1, 1, 1}).expand({-1, 1, a.size(-1)});  // rows and columns are alike
  const at::Tensor x = scaled.gather(1, longest).matmul(scaled);                                               // (E, 1, side)
  const at::Tensor unit = x / at::linalg_vector_norm(x, 2, {-1}, true).clamp_min(kTiny);
  return largest * at::linalg_vector_norm(unit.matmul(scaled), 2, {-2, -1}, /*keepdim=*/true);
}

/// Moves one factor by the products of A and B along its side: a, b (E, side, other).
void move(at::Tensor& q, const at::Tensor& a, const at::Tensor& b, double rate) {
  if (is_diagonal(q)) {
    const at::Tensor one = a.square().sum(-1), two = b.square().sum(-1);  // (E, side)
    q.sub_((one - two) * rate * q / ((one + two).amax(-1, true) + kTiny));
    return;
  }
  const at::Tensor one = a.matmul(a.mT()), two = b.matmul(b.mT());
  q.sub_((((one - two) * rate).triu() / (norm_bound(one + two) + kTiny)).matmul(q));
}

/// Equal largest entries, whose product stays.
void balance(at::Tensor& left, at::Tensor& right) {
  const at::Tensor l = left.abs().flatten(1).amax(-1), r = right.abs().flatten(1).amax(-1);  // (E)
  const at::Tensor mean = (l * r).sqrt();
  const auto scale = [](at::Tensor& q, const at::Tensor& by) {
    q.mul_(by.view(is_diagonal(q) ? std::vector<std::int64_t>{-1, 1} : std::vector<std::int64_t>{-1, 1, 1}));
  };
  scale(left, mean / l);
  scale(right, mean / r);
}

}  // namespace

const config::OwnFields<KronOptions>& kron_fields() {
  using config::field;
  static const config::OwnFields<KronOptions> fields{
      field("momentum", &KronOptions::momentum, config::from_below(0, 1), "Share of the running mean that an update keeps."),
      field("preconditioner_lr", &KronOptions::preconditioner_lr, config::above(0), "Rate at which the factors move."),
      field("max_dim", &KronOptions::max_dim, config::at_least(1),
            "Longest side of a matrix with a triangular factor; longer ones have a diagonal."),
  };
  return fields;
}

Kron::Kron(std::vector<ParamGroup> groups, KronOptions options)
    : groups_(std::move(groups)), options_(std::move(options)), slots_(kinds(options_.max_dim)) {}

bool Kron::due() {
  const double share = std::clamp(std::exp(-0.001 * (static_cast<double>(step_) - 500)), 0.03, 1.0);
  ++since_;
  if (static_cast<double>(since_) < 1 / share) {
    return false;
  }
  since_ = 0;
  return true;
}

at::Tensor Kron::probe(const Parameter& parameter, const at::Tensor& like) const {
  if (options_.probe) {
    return as_stack(parameter, options_.probe(parameter, step_));
  }
  const std::uint64_t seed =
      mixed_seed(seed_of(static_cast<std::uint64_t>(options_.seed), parameter.name), static_cast<std::uint64_t>(step_));
  const auto draw = [&](const at::Tensor& t) { return t.normal_(0, 1, seeded_generator(like.device(), seed)); };
  if (!is_expert_stack(parameter)) {
    return draw(at::empty_like(like));
  }
  const Range experts = parameter.placement.of(parameter.shape);  // each has its own numbers, wherever it lies
  const at::Tensor all = draw(at::empty({parameter.shape[0], like.size(1), like.size(2)}, like.options()));
  return all.narrow(0, experts.begin[0], like.size(0));
}

void Kron::update(const Parameter& parameter, bool moves, double lr, double weight_decay) {
  const bool fresh = !slots_.contains(parameter);
  std::vector<at::Tensor>& mine = slots_.of(parameter);
  at::Tensor &left = mine[kLeft], &right = mine[kRight];
  if (fresh) {
    start(left);
    start(right);
  }
  mine[kMomentum].mul_(options_.momentum).add_(parameter.wide_gradient(), 1 - options_.momentum);
  const at::Tensor m = as_stack(parameter, mine[kMomentum]) / (1 - std::pow(options_.momentum, static_cast<double>(step_ + 1)));
  if (moves) {
    if (!is_vector(parameter) && (moved_ + 1) % kBalanceEvery == 0) {
      balance(left, right);
    }
    const at::Tensor a = times_right(left_times(left, m), right);
    const at::Tensor b = unwhitened(probe(parameter, m), left, right);
    if (!is_vector(parameter)) {
      move(left, a, b, options_.preconditioner_lr);
    }
    move(right, a.mT(), b.mT(), options_.preconditioner_lr);
  }
  at::Tensor u = left_transposed_times(left, left_times(left, m));
  u = times_right_plain(times_right(u, right), right);
  const at::Tensor size = u.square().mean({-2, -1}, /*keepdim=*/true).sqrt() + 1e-6;
  u = (u * (1.1 / size).clamp_max(1)).view_as(parameter.master);
  const at::Tensor stored = parameter.master.detach();
  const at::Tensor master = stored.to(at::kFloat);  // the same tensor, but for bf16 weights
  master.mul_(1 - lr * weight_decay).add_(u, -lr);
  if (!master.is_same(stored)) {
    stored.copy_(master);
  }
}

void Kron::step(double lr) {
  const at::NoGradGuard no_grad;
  const bool moves = due();
  for (const ParamGroup& group : groups_) {
    for (const ParameterPtr& parameter : group.parameters) {
      if (parameter->gradient().defined()) {
        update(*parameter, moves, lr, group.weight_decay);
      }
    }
  }
  ++step_;
  moved_ += moves ? 1 : 0;
}

OptimizerState Kron::state() const {
  OptimizerState state;
  slots_.save(state);
  state.integers["kron_step"] = step_;
  state.integers["kron_since"] = since_;
  state.integers["kron_moved"] = moved_;
  return state;
}

void Kron::load(const OptimizerState& state) {
  slots_.load(state, groups_);
  const auto number = [&](const char* name) {
    const auto found = state.integers.find(name);
    KF_CHECK(found != state.integers.end(), Code::checkpoint, "the optimizer state lacks '{}'", name);
    return found->second;
  };
  step_ = number("kron_step");
  since_ = number("kron_since");
  moved_ = number("kron_moved");
}

}  // namespace kf
