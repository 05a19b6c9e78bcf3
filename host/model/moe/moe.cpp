#include "model/moe/moe.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "config/plan/derived.h"
#include "core/error.h"
#include "kernels/kernels.h"
#include "model/init.h"
#include "model/moe/capacity.h"
#include "model/observe.h"
#include "parallel/graph.h"
#include "parallel/world.h"
#include "registry/registries.h"

namespace kf {

MoeLayer::MoeLayer(const MoeOptions& options, MoeMembers members) : options_(options), members_(std::move(members)) {
  add_child("router", members_.router);
  add_child("", members_.experts);
  for (std::size_t i = 0; i < members_.shared.size(); ++i) {
    add_child(members_.shared.size() == 1 ? "shared_expert" : "shared_expert." + std::to_string(i), members_.shared[i]);
  }
  const auto add_where = [&](const char* name, const auto& part) {
    if (part != nullptr) {
      add_child(name, part);
    }
  };
  add_where("shared_expert_gate", members_.shared_gate);
  add_where("input_norm", members_.input_norm);
  add_where("latent_down", members_.down);
  add_where("latent_up", members_.up);
}

void MoeLayer::Sums::add(bool divided, const at::Tensor& y) {
  at::Tensor& sum = divided ? share : same;
  sum = sum.defined() ? sum + y : y;
}

bool MoeLayer::divides_shared() const {
  // Observers of an mlp see what it gives, not a share.
  return observation_count == 0 &&
         std::all_of(members_.shared.begin(), members_.shared.end(), [](const auto& mlp) { return mlp->divided(); });
}

bool MoeLayer::any_is_divided() const { return members_.experts->divided() || (!members_.shared.empty() && divides_shared()); }

void MoeLayer::add_shared(Sums& sums, const Tokens& tokens, const ForwardContext& context) const {
  if (members_.shared.empty()) {
    return;
  }
  const bool divided = divides_shared();
  at::Tensor y;
  for (const std::shared_ptr<Mlp>& mlp : members_.shared) {
    const at::Tensor own = divided ? mlp->share(tokens.entered) : mlp->forward(tokens.same, context);
    y = y.defined() ? y + own : own;
  }
  if (members_.shared_gate != nullptr) {
    const at::Tensor gate = members_.shared_gate->forward(tokens.same).sigmoid();
    y = y * (divided ? members_.ranks.shared(gate) : gate);
  }
  sums.add(divided, y);
}

/// What stands around the experts is computed alike: where there is something, its sums between ranks are those of one that is as wide as
/// an expert.
void MoeLayer::add_routed(Sums& sums, const Tokens& tokens, const Dispatch& dispatch, const ForwardContext& context) const {
  const bool divided = members_.experts->divided();
  at::Tensor in = divided ? tokens.entered : tokens.same;
  if (members_.input_norm != nullptr || members_.down != nullptr) {
    in = members_.input_norm != nullptr ? members_.input_norm->forward(tokens.same) : tokens.same;
    in = members_.down != nullptr ? members_.down->forward(in) : in;
    in = divided ? members_.ranks.shared(in) : in;
  }
  const at::Tensor y = members_.experts->forward(in, dispatch, context);
  if (members_.up == nullptr) {
    sums.add(divided, y);
  } else {
    sums.add(false, members_.up->forward(divided ? members_.ranks.summed(y) : y));
  }
}

/// Experts that are full take no more. In training the tokens of all ranks count, in the order of one rank.
void MoeLayer::drop(Dispatch& dispatch, std::int64_t length, const ForwardContext& context) const {
  if (options_.capacity_factor <= 0) {
    return;
  }
  const at::Tensor fits = shares_tokens() ? within_capacity(dispatch.experts, options_.experts, options_.capacity_factor,
                                                            {length, context.positions}, *options_.world)
                                          : within_capacity(dispatch.experts, options_.experts, options_.capacity_factor);
  dispatch.weights = dispatch.weights * fits;
  if (options_.world != nullptr && options_.world->along(Axis::ep).size() > 1) {  // else the weight alone says it
    dispatch.dropped = fits.logical_not();
  }
}

/// Experts with few tokens, of all ranks, learn as fast as those with many.
at::Tensor MoeLayer::gradient_factors(const at::Tensor& own_counts) const {
  at::Tensor counts = own_counts;
  if (shares_tokens()) {
    counts = counts.clone();
    options_.world->data().sum(counts);
  }
  counts = counts.to(at::kFloat);
  return (counts.mean() / counts).nan_to_num(0.0, 0.0, 0.0);  // nothing flows where there is no token
}

bool MoeLayer::shares_tokens() const { return training() && options_.world != nullptr && options_.world->data().size() > 1; }

at::Tensor MoeLayer::forward(const at::Tensor& x, const ForwardContext& context) const {
  const TensorRanks& ranks = members_.ranks;
  ForwardContext inside = context;  // the router sees all tokens, so do the parts that stand beside the experts
  inside.split_sequence = false;
  Tokens tokens;
  if (any_is_divided()) {  // positions come together once, for all that reads them
    tokens.entered = ranks.enter(x, context);
    tokens.same = context.split_sequence ? alike(tokens.entered, 1, ranks.group()) : x;
  } else {
    tokens.same = tokens.entered = ranks.whole(x, context);
  }
  const Sums sums = run(tokens, inside);
  at::Tensor y = sums.share.defined() ? ranks.leave(sums.share.view_as(tokens.same), context) : at::Tensor();
  if (sums.same.defined()) {
    const at::Tensor own = ranks.own(sums.same.view_as(tokens.same), context);
    y = y.defined() ? y + own : own;
  }
  return observed(*this, x, y);
}

MoeLayer::Sums MoeLayer::run(const Tokens& x, const ForwardContext& context) const {
  const auto flat = [](const at::Tensor& t) { return t.reshape({-1, t.size(-1)}); };  // (N, C)
  const Tokens tokens{flat(x.same), flat(x.entered)};
  const std::int64_t length = x.same.dim() == 3 ? x.same.size(1) : tokens.same.size(0);
  const Routing routing = members_.router->route_sequences(tokens.same, length);
  Dispatch dispatch;
  dispatch.experts = routing.experts;
  dispatch.weights = routing.weights;
  dispatch.weigh_input = options_.weigh_input;
  drop(dispatch, length, context);
  ExpertsRecord record;
  record.layer = this;
  record.experts = routing.experts;
  record.weights = routing.weights.detach();
  record.kept = dispatch.weights.detach();
  record.balance = routing.balance;
  record.mean_scores = routing.mean_scores;
  record.balance_factor = routing.balance_factor;
  record.z = routing.z;
  record.extra = routing.extra;
  if (training()) {
    record.counts = count_assignments(routing.experts, options_.experts);
    if (options_.gradient_scale) {
      dispatch.gradient_factors = gradient_factors(record.counts);
    }
  }
  if (context.results != nullptr) {
    context.results->experts.push_back(std::move(record));
  }
  Sums sums;
  add_routed(sums, tokens, dispatch, context);
  add_shared(sums, tokens, context);
  return sums;
}

namespace {

/// "swiglu" -> "silu": what the native mlp part does.
std::string activation_name(const std::string& mlp) {
  const std::string prefix = "standard_";
  return mlp == "swiglu" ? "silu" : mlp.starts_with(prefix) ? mlp.substr(prefix.size()) : mlp;
}

/// `count` layers of the settings' mlp, `hidden` wide inside.
std::vector<std::shared_ptr<Mlp>> make_mlps(const PartArgs& args, const Place& place, std::int64_t count, std::int64_t hidden) {
  Place inside = place;
  inside.hidden = hidden;
  const std::string name = config::mlp_name(args.config.model.activation);
  std::vector<std::shared_ptr<Mlp>> mlps;
  for (std::int64_t i = 0; i < count; ++i) {
    mlps.push_back(make_part(args.registries.mlp, name, args, inside));
  }
  return mlps;
}

std::shared_ptr<Experts> make_experts(const PartArgs& args, const Place& place) {
  const config::ModelConfig& m = args.config.model;
  const std::string name = config::mlp_name(m.activation);
  const std::string& origin = args.registries.mlp.get(name).info.origin;
  const std::int64_t hidden = config::expert_ffn_hidden_dim(m);
  Group* const owners = args.world != nullptr ? &args.world->along(Axis::ep) : nullptr;
  if (origin != "native") {
    KF_CHECK(!m.moe_packed_experts, Code::config,
             "model.moe_packed_experts = true needs a native model.activation; experts of the mlp '{}' (registered by {}) are modules of "
             "their own",
             name, origin);
    return std::make_shared<ModuleExperts>(make_mlps(args, place, m.num_experts, hidden), owners);
  }
  const ExpertsOptions options{
      m.num_experts,        place.dim, hidden, hidden_init(m, place.dim), output_init(m, hidden), m.mlp_bias, TensorRanks(args),
      m.moe_packed_experts, owners};
  const Activation activation = activation_of(args, activation_name(name));
  if (m.moe_impl == "loop" || args.kernels->grouped_linear == nullptr) {
    return std::make_shared<LoopExperts>(options, activation);
  }
  return std::make_shared<GroupedExperts>(options, activation, *args.kernels);
}

}  // namespace

std::shared_ptr<MoeLayer> make_moe(const PartArgs& args, const Place& place) {
  const config::ModelConfig& m = args.config.model;
  const MoeOptions options{
      place.layer, m.num_experts, m.moe_capacity_factor, m.moe_gradient_scale, m.moe_weight_on_input, m.moe_router_z_loss_weight,
      args.world};
  Place inside = place;
  inside.dim = config::expert_dim(m);
  MoeMembers members;
  members.ranks = TensorRanks(args);
  members.router = make_part(args.registries.router, m.moe_router, args, place);
  members.experts = make_experts(args, inside);
  members.shared = make_mlps(args, place, m.moe_shared_experts, config::shared_ffn_hidden_dim(m));
  if (m.moe_shared_gate) {
    members.shared_gate = std::make_shared<Linear>(place.dim, 1, hidden_init(m, place.dim));
  }
  if (m.moe_beside_dense) {
    members.input_norm = make_part(args.registries.norm, m.norm_type, args, place);
  }
  if (inside.dim != place.dim) {
    members.down = std::make_shared<Linear>(place.dim, inside.dim, hidden_init(m, place.dim));
    members.up = std::make_shared<Linear>(inside.dim, place.dim, output_init(m, inside.dim));
  }
  return std::make_shared<MoeLayer>(options, std::move(members));
}

}  // namespace kf
