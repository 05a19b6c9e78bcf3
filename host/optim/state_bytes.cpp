#include "optim/state_bytes.h"

#include <algorithm>
#include <functional>
#include <map>

#include "config/plan/derived.h"
#include "config/plan/kernel_set.h"
#include "core/name_pattern.h"
#include "kernels/adamw/blockwise.h"
#include "model/expert_stack.h"
#include "optim/adam_mini.h"
#include "optim/kron.h"
#include "optim/muon.h"
#include "optim/slots.h"
#include "optim/soap.h"
#include "registry/registries.h"

namespace kf {
namespace {

using Each = std::function<double(const Parameter&)>;

using Whole = std::function<bool(const Parameter&)>;

bool never(const Parameter& /*weight*/) { return false; }
bool always(const Parameter& /*weight*/) { return true; }

/// What an optimizer holds of one parameter, how many fp32 copies of all of them an update makes on its way, and which it needs whole.
struct Need {
  Each state;
  double copies = 0;
  Whole whole = never;
};

double numbers(const Parameter& p) { return static_cast<double>(p.numel()); }

/// `count` fp32 tensors of the parameter's shape.
Each like_parameter(double count) {
  return [count](const Parameter& p) { return 4 * count * numbers(p); };
}

/// A part's own options, as the settings say.
template <class Options>
Options own_options(const config::Config& config, const std::string& name, const config::OwnFields<Options>& fields) {
  return fields.read(Registries::options_of(config, "optimizer", name));
}

/// Numbers in `times` square matrices a side of a weight (stacks: of each one); sides longer than `max_dim` have `otherwise` of them.
double side_numbers(const Parameter& p, std::int64_t max_dim, double times, bool diagonals) {
  const std::size_t dims = p.shape.size();
  const double stack = is_expert_stack(p) ? static_cast<double>(p.shape[0]) : 1;
  if (own_dims(p).size() < 2) {
    return diagonals ? numbers(p) + stack : 0;
  }
  double out = 0;
  for (const std::size_t side : {dims - 2, dims - 1}) {
    const auto n = static_cast<double>(p.shape[side]);
    out += stack * (p.shape[side] <= max_dim ? n * n : diagonals ? n : 0);
  }
  return times * out;
}

/// Of a moment in optimizer.state_dtype_*.
double moment_bytes(const Parameter& p, const std::string& dtype) {
  if ((dtype == "int8" || dtype == "fp8") && is_blockwise(state_type_of(p, at::kByte))) {
    return static_cast<double>(blockwise_bytes(p.numel()));
  }
  return (dtype == "bf16" ? 2 : 4) * numbers(p);
}

/// Whether adamw moves what is stored as it lies: kernels/adamw/rows_simd.cpp, on a CPU.
bool adamw_by_rows(const config::Config& config, bool fused) {
  const config::OptimizerConfig& o = config.optimizer;
  return fused && config.run.device == "cpu" && o.update_rms_clip == 0 && o.update_norm_window == 0;
}

Need adamw(const config::Config& config, bool fused) {
  const config::OptimizerConfig& o = config.optimizer;
  const bool extras = o.eps_root > 0 || o.nesterov || o.update_rms_clip > 0 || o.update_norm_window > 0;
  // Else moments of fewer bits are moved as fp32 copies.
  const double wide = (o.state_dtype_m != "fp32" ? 1 : 0) + (o.state_dtype_v != "fp32" ? 1 : 0);
  const double copies = adamw_by_rows(config, fused) ? 0 : wide + (fused && !extras ? 0 : 1);
  return {[m = o.state_dtype_m, v = o.state_dtype_v](const Parameter& p) { return moment_bytes(p, m) + moment_bytes(p, v) + 4; }, copies,
          o.update_rms_clip > 0 ? always : never};
}

Need muon(const config::Config& config, const ParameterList& parameters) {
  const config::OptimizerConfig& o = config.optimizer;
  const bool by_shape = o.muon_params == "shape";
  std::vector<std::string> names;
  for (const ParameterPtr& p : parameters) {
    names.push_back(p->name);
  }
  const std::vector<bool> excluded = match_names(o.muon_exclude, names, "optimizer.muon_exclude");
  std::map<std::string, bool> left;
  for (std::size_t i = 0; i < names.size(); ++i) {
    left[names[i]] = excluded[i];
  }
  const Whole taken = [=](const Parameter& p) { return muon_takes(p, by_shape) && !left.at(p.name); };
  return {[=](const Parameter& p) { return taken(p) ? 4 * numbers(p) : 8 * numbers(p) + 4; }, 0, taken};
}

std::map<std::string, Need> needs(const config::Config& config, const ParameterList& parameters) {
  const config::OptimizerConfig& o = config.optimizer;
  const std::int64_t width = config::head_dim(config.model);
  const std::int64_t soap = own_options(config, "soap", soap_fields()).max_dim;
  const std::int64_t kron = own_options(config, "kron", kron_fields()).max_dim;
  return {
      {"adamw", adamw(config, o.fused && config::kernel_set(config.train) == config::KernelSet::fused)},
      {"cautious_adamw", {like_parameter(2), 0, always}},
      {"adopt", {like_parameter(2), 0}},
      {"mars", {like_parameter(3), 0, always}},
      {"adam_mini",
       {[=](const Parameter& p) {
          const std::int64_t rows = rows_of_block(p, width);
          return 4 * (numbers(p) + (rows == 0 ? 1 : numbers(p) / static_cast<double>(p.shape.back() * rows)));
        },
        0, always}},
      {"lion", {like_parameter(1), 1}},
      {"sgdm", {like_parameter(o.sgd_momentum > 0 ? 1 : 0), o.nesterov ? 2.0 : 0.0}},
      {"rmsprop", {like_parameter(2), 2}},
      {"sophia_h", {like_parameter(2), 1}},
      {"schedule_free_adamw", {like_parameter(3), 2}},
      {"scion", {like_parameter(1), 0, always}},
      {"muon", muon(config, parameters)},
      {"soap", {[=](const Parameter& p) { return 4 * (2 * numbers(p) + side_numbers(p, soap, 2, false)); }, 0, always}},
      {"kron", {[=](const Parameter& p) { return 4 * (numbers(p) + side_numbers(p, kron, 1, true)); }, 0, always}},
  };
}

}  // namespace

OptimizerBytes optimizer_bytes(const config::Config& config, const ParameterList& parameters) {
  std::map<std::string, Need> all = needs(config, parameters);
  OptimizerBytes out;
  const auto found = all.find(config.optimizer.name);
  out.known = found != all.end();
  const Need need = out.known ? found->second : Need{like_parameter(2), 0, always};
  const double average = config.averaging.type != "none" ? 4 : 0;
  double trainable = 0;
  double largest = 0;
  for (const ParameterPtr& p : parameters) {
    const bool moves = p->trainable && !p->buffer;
    out.each.push_back(moves ? need.state(*p) + average * numbers(*p) : 0);
    out.whole.push_back(need.whole(*p));
    out.state += out.each.back();
    trainable += moves ? numbers(*p) : 0;
    largest = moves ? std::max(largest, numbers(*p)) : largest;
  }
  // Weights kept in bf16 are moved as fp32 copies; optimizers that go from tensor to tensor need a few of the largest.
  out.copies = need.copies + (config.train.param_dtype == "bf16" ? 1 : 0);
  out.by_tensor = need.copies == 0 && !(config.optimizer.name == "adamw" || config.optimizer.name == "sgdm");
  out.passing = 4 * trainable * out.copies + (out.by_tensor ? 4 * kTensorCopies * largest : 0);
  return out;
}

}  // namespace kf
