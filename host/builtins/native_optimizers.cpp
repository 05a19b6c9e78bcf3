// The native optimizers: from settings to their options.

#include <algorithm>
#include <map>
#include <type_traits>

#include "builtins/native.h"
#include "config/plan/derived.h"
#include "kernels/kernels.h"
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

using Groups = std::vector<ParamGroup>;

/// optimizer.eps, where 0 would make 0 / 0 of weights that never had a gradient, as the rows of tokens that no batch holds. Beside any
/// other denominator this is nothing in fp32.
double divisor(const config::OptimizerConfig& o) { return std::max(o.eps, 1e-30); }

/// What optimizers with two moments share.
template <class Options>
void set_moments(Options& options, const config::OptimizerConfig& o) {
  options.beta1 = o.betas[0];
  options.beta2 = o.betas[1];
  options.eps = divisor(o);
}

/// An optimizer with a table of its own, whose options `set` completes from the other settings.
template <class Made, class Options>
void add_with_fields(Registries& r, std::string name, std::string doc, const config::OwnFields<Options>& fields,
                     void (*set)(std::type_identity_t<Options>& options, const config::Config& config)) {
  r.optimizer.add(native(std::move(name), std::move(doc), fields.rows()), [&fields, set](const PartArgs& a, Groups groups) {
    Options options = fields.read(a.options);
    set(options, a.config);
    return std::make_unique<Made>(std::move(groups), options);
  });
}

at::ScalarType state_type(const std::string& name, at::ScalarType bytes, at::ScalarType fp8) {
  const std::map<std::string, at::ScalarType> types{{"fp32", at::kFloat}, {"bf16", at::kBFloat16}, {"int8", bytes}, {"fp8", fp8}};
  return types.at(name);
}

/// optimizer.fused = false takes the plain twins of updates, whatever else the job takes.
const Kernels* update_kernels(const PartArgs& a) { return a.config.optimizer.fused ? a.kernels : &plain_kernels(); }

AdamWOptions adamw_options(const PartArgs& a) {
  const config::OptimizerConfig& o = a.config.optimizer;
  AdamWOptions options;
  set_moments(options, o);
  options.kernels = update_kernels(a);
  return options;
}

std::unique_ptr<Optimizer> make_adamw(const PartArgs& a, Groups groups) {
  const config::OptimizerConfig& o = a.config.optimizer;
  AdamWOptions options = adamw_options(a);
  options.eps_root = o.eps_root;
  options.nesterov = o.nesterov;
  options.corrected_by = o.adamc ? o.lr : 0;
  options.type_m = state_type(o.state_dtype_m, at::kChar, at::kFloat8_e4m3fn);
  options.type_v = state_type(o.state_dtype_v, at::kByte, at::kFloat8_e5m2);
  options.rms_clip = o.update_rms_clip;
  options.norm_window = o.update_norm_window;
  options.norm_sigma = o.update_norm_sigma;
  return std::make_unique<AdamW>(std::move(groups), options);
}

std::unique_ptr<Optimizer> make_muon(const PartArgs& a, const Groups& groups) {
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
  options.adam = adamw_options(a);
  return std::make_unique<Muon>(groups, options);
}

void add_published(Registries& r) {
  r.optimizer.add(native("cautious_adamw", "AdamW that moves only where it agrees with the gradient's sign (Liang et al. 2024)."),
                  [](const PartArgs& a, Groups groups) {
                    const config::OptimizerConfig& o = a.config.optimizer;
                    return std::make_unique<CautiousAdamW>(std::move(groups), o.betas[0], o.betas[1], divisor(o));
                  });
  add_with_fields<Mars>(r, "mars", "AdamW with variance-reduced gradients (Yuan et al. 2024).", mars_fields(),
                        [](MarsOptions& options, const config::Config& c) { set_moments(options, c.optimizer); });
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
  add_with_fields<Scion>(r, "scion", "Steps to the border of norm balls: orthogonalised or signs (Pethick et al. 2025).", scion_fields(),
                         [](ScionOptions& options, const config::Config& c) {
                           options.beta1 = c.optimizer.betas[0];
                           options.ns_steps = c.optimizer.muon_ns_steps;
                         });
  add_with_fields<RmsProp>(r, "rmsprop", "Gradients over the root of their mean square, with momentum (Tieleman and Hinton 2012).",
                           rmsprop_fields(), [](RmsPropOptions& options, const config::Config& c) {
                             options.beta2 = c.optimizer.betas[1];
                             options.eps = divisor(c.optimizer);
                           });
}

/// Optimizers with a preconditioner a side of a matrix.
void add_preconditioned(Registries& r) {
  add_with_fields<Kron>(r, "kron", "Momentum whitened by Kronecker factors that are fitted on the way: PSGD (Li 2018).", kron_fields(),
                        [](KronOptions& options, const config::Config& c) { options.seed = c.train.seed; });
  add_with_fields<Soap>(r, "soap", "Adam in the eigenbasis of Shampoo's preconditioner (Vyas et al. 2024).", soap_fields(),
                        [](SoapOptions& options, const config::Config& c) { set_moments(options, c.optimizer); });
}

void add_second_order(Registries& r) {
  add_with_fields<Sophia>(r, "sophia_h",
                          "Momentum over the diagonal of the Hessian, clipped (Liu et al. 2023); betas 0.96 and 0.99 are usual.",
                          sophia_fields(), [](SophiaOptions& options, const config::Config& c) { set_moments(options, c.optimizer); });
}

}  // namespace

void add_native_optimizers(Registries& r) {
  r.optimizer.add(native("adamw", "Adam with decoupled weight decay (Loshchilov and Hutter 2019)."), make_adamw);
  r.optimizer.add(native("lion", "Sign of an interpolated momentum (Chen et al. 2023)."), [](const PartArgs& a, Groups groups) {
    const config::OptimizerConfig& o = a.config.optimizer;
    return std::make_unique<Lion>(std::move(groups), LionOptions{o.betas[0], o.betas[1], update_kernels(a)});
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
