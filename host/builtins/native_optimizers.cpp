// The native optimizers: from settings to their options.

#include <algorithm>
#include <variant>

#include "builtins/native.h"
#include "config/plan/derived.h"
#include "optim/adam_mini.h"
#include "optim/adamw.h"
#include "optim/adopt.h"
#include "optim/cautious_adamw.h"
#include "optim/kron.h"
#include "optim/lion.h"
#include "optim/mars.h"
#include "optim/muon.h"
#include "optim/rmsprop.h"
#include "optim/schedule_free.h"
#include "optim/scion.h"
#include "optim/sgd.h"
#include "optim/soap.h"
#include "optim/sophia.h"

namespace kf {
namespace {

using config::Node;
using config::PartField;

PartField positive(std::string name, double fallback, std::string doc) {
  return {std::move(name), PartField::Type::real, Node(fallback), 0.0, std::nullopt, {}, std::move(doc)};
}

/// A share of what was before, below 1.
PartField share(std::string name, double fallback, std::string doc) {
  return {std::move(name), PartField::Type::real, Node(fallback), 0.0, 0.999999, {}, std::move(doc)};
}

PartField count(std::string name, std::int64_t fallback, std::string doc) {
  return {std::move(name), PartField::Type::integer, Node(fallback), 1.0, std::nullopt, {}, std::move(doc)};
}

/// Fields of the part's own table; the declared default where a test made the settings by hand.
std::int64_t option(const PartArgs& a, const std::string& name, std::int64_t fallback) {
  const Node* const found = a.options.find(name);
  const std::int64_t* const value = found != nullptr ? std::get_if<std::int64_t>(&found->value) : nullptr;
  return value != nullptr ? *value : fallback;
}

double option(const PartArgs& a, const std::string& name, double fallback) {
  const Node* const found = a.options.find(name);
  const double* const value = found != nullptr ? std::get_if<double>(&found->value) : nullptr;
  return value != nullptr ? *value : fallback;
}

/// optimizer.eps, where 0 would make 0 / 0 of weights that never had a gradient, as the rows of tokens that no batch holds. Beside any
/// other denominator this is nothing in fp32.
double divisor(const config::OptimizerConfig& o) { return std::max(o.eps, 1e-30); }

at::ScalarType state_type(const std::string& name) { return name == "bf16" ? at::kBFloat16 : at::kFloat; }

AdamWOptions plain_adamw(const config::Config& config) {
  const config::OptimizerConfig& o = config.optimizer;
  AdamWOptions options;
  options.beta1 = o.betas[0];
  options.beta2 = o.betas[1];
  options.eps = divisor(o);
  options.fused = o.fused && config.train.compile_model;
  return options;
}

std::unique_ptr<Optimizer> make_adamw(const PartArgs& a, std::vector<ParamGroup> groups) {
  const config::OptimizerConfig& o = a.config.optimizer;
  AdamWOptions options = plain_adamw(a.config);
  options.eps_root = o.eps_root;
  options.nesterov = o.nesterov;
  options.corrected_by = o.adamc ? o.lr : 0;
  options.type_m = state_type(o.state_dtype_m);
  options.type_v = state_type(o.state_dtype_v);
  options.rms_clip = o.update_rms_clip;
  options.norm_window = o.update_norm_window;
  options.norm_sigma = o.update_norm_sigma;
  return std::make_unique<AdamW>(std::move(groups), options);
}

std::unique_ptr<Optimizer> make_muon(const PartArgs& a, std::vector<ParamGroup> groups) {
  const config::OptimizerConfig& o = a.config.optimizer;
  MuonOptions options;
  options.momentum = o.muon_momentum;
  options.ns_steps = o.muon_ns_steps;
  options.by_shape = o.muon_params == "shape";
  options.nesterov = o.muon_nesterov;
  options.to_rms = o.muon_scale == "rms";
  options.rms = o.muon_rms;
  options.weight_decay = o.muon_weight_decay;
  options.exclude = o.muon_exclude;
  options.lr = o.lr;
  options.adam_lr = o.muon_adam_lr.value_or(o.lr);
  options.adam = plain_adamw(a.config);
  return std::make_unique<Muon>(std::move(groups), options);
}

std::unique_ptr<Optimizer> make_scion(const PartArgs& a, std::vector<ParamGroup> groups) {
  ScionOptions options;
  options.beta1 = a.config.optimizer.betas[0];
  options.ns_steps = a.config.optimizer.muon_ns_steps;
  options.hidden_radius = option(a, "hidden_radius", options.hidden_radius);
  options.other_radius = option(a, "other_radius", options.other_radius);
  return std::make_unique<Scion>(std::move(groups), options);
}

using Groups = std::vector<ParamGroup>;

void add_published(Registries& r) {
  r.optimizer.add(native("cautious_adamw", "AdamW that moves only where it agrees with the gradient's sign (Liang et al. 2024)."),
                  [](const PartArgs& a, Groups groups) {
                    const config::OptimizerConfig& o = a.config.optimizer;
                    return std::make_unique<CautiousAdamW>(std::move(groups), o.betas[0], o.betas[1], divisor(o));
                  });
  r.optimizer.add(
      native("mars", "AdamW with variance-reduced gradients (Yuan et al. 2024).",
             {positive("gamma", 0.025, "Share of the correction by the gradient before.")}),
      [](const PartArgs& a, Groups groups) {
        const config::OptimizerConfig& o = a.config.optimizer;
        return std::make_unique<Mars>(std::move(groups), MarsOptions{o.betas[0], o.betas[1], divisor(o), option(a, "gamma", 0.025)});
      });
  r.optimizer.add(native("adopt", "Adam that normalises by the second moment before (Taniguchi et al. 2024)."),
                  [](const PartArgs& a, Groups groups) {
                    const config::OptimizerConfig& o = a.config.optimizer;
                    return std::make_unique<Adopt>(std::move(groups), o.betas[0], o.betas[1], divisor(o));
                  });
  r.optimizer.add(native("adam_mini", "AdamW with one second moment a head or neuron (Zhang et al. 2024)."),
                  [](const PartArgs& a, Groups groups) {
                    const config::OptimizerConfig& o = a.config.optimizer;
                    return std::make_unique<AdamMini>(
                        std::move(groups), AdamMiniOptions{o.betas[0], o.betas[1], divisor(o), config::head_dim(a.config.model)});
                  });
  r.optimizer.add(native("scion", "Steps to the border of norm balls: orthogonalised or signs (Pethick et al. 2025).",
                         {positive("hidden_radius", 50, "Radius for hidden matrices."),
                          positive("other_radius", 3000, "Radius for embedding, head and vectors.")}),
                  make_scion);
  r.optimizer.add(native("rmsprop", "Gradients over the root of their mean square, with momentum (Tieleman and Hinton 2012).",
                         {share("momentum", 0.9, "Share of the step before that is kept.")}),
                  [](const PartArgs& a, Groups groups) {
                    const config::OptimizerConfig& o = a.config.optimizer;
                    return std::make_unique<RmsProp>(std::move(groups), o.betas[1], divisor(o), option(a, "momentum", 0.9));
                  });
}

/// Optimizers with a preconditioner a side of a matrix.
void add_preconditioned(Registries& r) {
  r.optimizer.add(native("kron", "Momentum whitened by Kronecker factors that are fitted on the way: PSGD (Li 2018).",
                         {share("momentum", 0.9, "Share of the running mean that an update keeps."),
                          positive("preconditioner_lr", 0.1, "Rate at which the factors move."),
                          count("max_dim", 8192, "Longest side of a matrix with a triangular factor; longer ones have a diagonal.")}),
                  [](const PartArgs& a, Groups groups) {
                    KronOptions options;
                    options.momentum = option(a, "momentum", options.momentum);
                    options.preconditioner_lr = option(a, "preconditioner_lr", options.preconditioner_lr);
                    options.max_dim = option(a, "max_dim", options.max_dim);
                    options.seed = a.config.train.seed;
                    return std::make_unique<Kron>(std::move(groups), options);
                  });
  r.optimizer.add(native("soap", "Adam in the eigenbasis of Shampoo's preconditioner (Vyas et al. 2024).",
                         {count("frequency", 10, "Updates between two refreshes of the bases."),
                          count("max_dim", 10000, "Longest side of a matrix that gets a basis.")}),
                  [](const PartArgs& a, Groups groups) {
                    const config::OptimizerConfig& o = a.config.optimizer;
                    SoapOptions options{o.betas[0], o.betas[1], divisor(o)};
                    options.frequency = option(a, "frequency", options.frequency);
                    options.max_dim = option(a, "max_dim", options.max_dim);
                    return std::make_unique<Soap>(std::move(groups), options);
                  });
}

void add_second_order(Registries& r) {
  r.optimizer.add(native("sophia_h", "Momentum over the diagonal of the Hessian, clipped (Liu et al. 2023); betas 0.96 and 0.99 are usual.",
                         {positive("gamma", 0.01, "Share of the curvature in the denominator: smaller clips more."),
                          count("update_interval", 10, "Updates between two estimates of the curvature.")}),
                  [](const PartArgs& a, Groups groups) {
                    const config::OptimizerConfig& o = a.config.optimizer;
                    SophiaOptions options{o.betas[0], o.betas[1], divisor(o)};
                    options.gamma = option(a, "gamma", options.gamma);
                    options.interval = option(a, "update_interval", options.interval);
                    return std::make_unique<Sophia>(std::move(groups), options);
                  });
}

}  // namespace

void add_native_optimizers(Registries& r) {
  r.optimizer.add(native("adamw", "Adam with decoupled weight decay (Loshchilov and Hutter 2019)."), make_adamw);
  r.optimizer.add(native("lion", "Sign of an interpolated momentum (Chen et al. 2023)."), [](const PartArgs& a, Groups groups) {
    return std::make_unique<Lion>(std::move(groups), a.config.optimizer.betas[0], a.config.optimizer.betas[1]);
  });
  r.optimizer.add(native("schedule_free_adamw", "AdamW with averaged iterates instead of a schedule (Defazio et al. 2024)."),
                  [](const PartArgs& a, Groups groups) {
                    const config::OptimizerConfig& o = a.config.optimizer;
                    return std::make_unique<ScheduleFreeAdamW>(
                        std::move(groups), ScheduleFreeOptions{o.betas[0], o.betas[1], divisor(o), o.schedule_free_warmup_steps});
                  });
  r.optimizer.add(native("muon", "Orthogonalised momentum for hidden matrices, AdamW for the rest (Jordan et al. 2024)."), make_muon);
  r.optimizer.add(native("sgdm", "Gradient descent with momentum and decoupled decay (Loshchilov and Hutter 2019)."),
                  [](const PartArgs& a, Groups groups) {
                    return std::make_unique<Sgd>(std::move(groups), a.config.optimizer.sgd_momentum, a.config.optimizer.nesterov);
                  });
  add_published(r);
  add_preconditioned(r);
  add_second_order(r);
}

}  // namespace kf
