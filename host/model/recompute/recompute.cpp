#include "model/recompute/recompute.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/engine.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/trace.h"
#include "model/model.h"
#include "model/recompute/kept_results.h"
#include "model/recompute/twice_differentiable.h"

namespace kf {
namespace {

namespace ag = torch::autograd;

/// What the autograd node holds besides its input.
struct Replay : torch::CustomClassHolder {
  Replay(Region r, const ForwardContext& c) : region(std::move(r)), context(c), kept(region.kept) {
    context.results = nullptr;  // of the forward, which may be over when backward comes
  }

  /// The result, then the losses that the body has left in `results`.
  ag::variable_list run(const at::Tensor& x, bool first, ForwardResults& results) {
    const KeptResults::Scope scope(kept, first);
    if (context.moment != nullptr) {  // of another micro-batch, where several are in flight
      *context.moment = {context.step, context.micro};
    }
    ForwardContext inside = context;
    inside.results = &results;
    ag::variable_list out{region.body(x, inside)};
    for (const at::Tensor* loss : results.losses()) {
      out.push_back(*loss);
    }
    return out;
  }

  Region region;
  ForwardContext context;
  KeptResults kept;
  ForwardResults left;          // by the first run, until it is handed on
  std::vector<at::Tensor> rng;  // states of the generators before the first run
};

/// The generators that a body on `device` draws from where it does not bring its own: the CPU's, and the device's.
std::vector<at::Generator> generators_of(at::Device device) {
  std::vector<at::Generator> out{at::detail::getDefaultCPUGenerator()};
  if (!device.is_cpu()) {
    out.push_back(at::globalContext().defaultGenerator(device));
  }
  return out;
}

std::vector<at::Tensor> generator_states(at::Device device) {
  std::vector<at::Tensor> out;
  for (at::Generator& generator : generators_of(device)) {
    const std::lock_guard lock(generator.mutex());
    out.push_back(generator.get_state());
  }
  return out;
}

void set_generator_states(at::Device device, const std::vector<at::Tensor>& states) {
  std::vector<at::Generator> generators = generators_of(device);
  for (std::size_t i = 0; i < generators.size(); ++i) {
    const std::lock_guard lock(generators[i].mutex());
    generators[i].set_state(states[i]);
  }
}

/// The generators as they were before the first run, and afterwards as they were before the second.
class SecondRun {
 public:
  SecondRun(at::Device device, const std::vector<at::Tensor>& rng) : device_(device), after_(generator_states(device)) {
    set_generator_states(device, rng);
  }
  ~SecondRun() { set_generator_states(device_, after_); }
  SecondRun(const SecondRun&) = delete;
  SecondRun& operator=(const SecondRun&) = delete;

 private:
  at::Device device_;
  std::vector<at::Tensor> after_;
};

struct Recompute : ag::Function<Recompute> {
  /// `anchor` needs a gradient, so that the node is part of the graph also where x needs none.
  static ag::variable_list forward(ag::AutogradContext* context, const c10::intrusive_ptr<Replay>& replay, const at::Tensor& x,
                                   const at::Tensor& anchor) {
    (void)anchor;
    replay->rng = generator_states(x.device());
    context->saved_data["replay"] = c10::IValue::make_capsule(replay);
    context->save_for_backward({x});
    return replay->run(x, true, replay->left);
  }

  static ag::variable_list backward(ag::AutogradContext* context, ag::variable_list gradients) {
    KF_CHECK(ag::Engine::get_default_engine().is_checkpoint_valid(), Code::other,
             "recomputed activations need a whole backward: gradients of chosen tensors alone cannot be had through them");
    const auto replay = c10::static_intrusive_pointer_cast<Replay>(context->saved_data["replay"].toCapsule());
    const at::Tensor saved = context->get_saved_variables().front();
    const at::Tensor x = saved.detach().set_requires_grad(saved.requires_grad());
    ag::variable_list roots, root_gradients;
    {
      const SecondRun second(x.device(), replay->rng);
      const TraceRange range(TraceKind::phase, "recompute");
      const at::AutoGradMode on(true);
      ForwardResults results;  // the first run has counted
      const ag::variable_list outputs = replay->run(x, false, results);
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        if (outputs[i].requires_grad() && gradients[i].defined()) {
          roots.push_back(outputs[i]);
          root_gradients.push_back(gradients[i]);
        }
      }
    }
    if (!roots.empty()) {
      const TraceRange range(TraceKind::phase, "backward");
      ag::backward(roots, root_gradients);
    }
    return {at::Tensor(), x.grad(), at::Tensor()};
  }
};

}  // namespace

at::Tensor recompute(Region region, const at::Tensor& x, const ForwardContext& context) {
  const auto replay = c10::make_intrusive<Replay>(std::move(region), context);
  const at::Tensor anchor = at::zeros({}, x.options().dtype(at::kFloat)).set_requires_grad(true);  // factories ignore the option
  const ag::variable_list outputs = Recompute::apply(replay, x, anchor);
  ForwardResults left = std::exchange(replay->left, {});
  const std::vector<at::Tensor*> losses = left.losses();
  for (std::size_t i = 0; i < losses.size(); ++i) {
    *losses[i] = outputs[i + 1];
  }
  if (context.results != nullptr) {
    context.results->take(std::move(left));
  }
  return outputs[0];
}

bool may_recompute(const ForwardContext& context, bool training) {
  return training && context.cache == nullptr && at::GradMode::is_enabled() && !TwiceDifferentiable::wanted();
}

namespace {

/// What the named policies keep of a block (MaxText's); nothing for other words.
std::vector<std::string> kept_by(const std::string& policy) {
  using Names = std::vector<std::string>;
  static const std::map<std::string, Names> all{{"minimal", {"qkv", "out", "gate", "up", "down"}},
                                                {"save_qkv_proj", {"qkv"}},
                                                {"save_out_proj", {"out"}},
                                                {"save_dot_except_mlp", {"qkv", "out"}},
                                                {"save_dot_with_context_except_mlp", {"qkv", "context", "out"}},
                                                {"save_dot_except_mlpwi", {"qkv", "out", "down"}}};
  const auto found = all.find(policy);
  return found == all.end() ? Names() : found->second;
}

/// "q" -> "#q"; keys and values of latent attention come from one product.
void add_named(std::vector<std::string>& kept, const std::string& name) {
  const std::vector<std::string> parts = name == "qkv"                ? std::vector<std::string>{"q", "k", "v", "kv"}
                                         : name == "k" || name == "v" ? std::vector<std::string>{name, "kv"}
                                                                      : std::vector<std::string>{name};
  for (const std::string& part : parts) {
    kept.push_back("#" + part);
  }
}

bool is_result_name(const std::string& name) {
  const std::vector<std::string>& all = result_names();
  return std::find(all.begin(), all.end(), name) != all.end();
}

}  // namespace

RecomputePolicy recompute_policy(const config::TrainConfig& train, std::int64_t layer) {
  RecomputePolicy out;
  if (train.activation_checkpointing == "none" || layer % train.remat_every != 0) {
    return out;
  }
  if (train.activation_checkpointing != "selective") {
    out.block = true;
    for (const std::string& name : kept_by(train.activation_checkpointing)) {  // full keeps none
      add_named(out.kept, name);
    }
    return out;
  }
  bool keeps_attention = false;
  bool keeps_mlp = false;
  for (const std::string& name : train.remat_save) {
    keeps_attention = keeps_attention || name == "attention";
    keeps_mlp = keeps_mlp || name == "mlp";
    if (is_result_name(name)) {
      add_named(out.kept, name);
    } else if (name != "attention" && name != "mlp") {
      out.kept.push_back(operator_name(name, "train.remat_save"));
    }
  }
  if (train.remat_save.empty()) {
    out.kept = {"aten::mm",
                "aten::addmm",
                "aten::bmm",
                "aten::_grouped_mm",
                "aten::_scaled_dot_product_flash_attention",
                "aten::_scaled_dot_product_flash_attention_for_cpu",
                "aten::_scaled_dot_product_efficient_attention",
                "aten::_scaled_dot_product_cudnn_attention"};
  }
  out.block = !keeps_attention && !keeps_mlp;
  out.attention = keeps_mlp && !keeps_attention;
  out.mlp = keeps_attention && !keeps_mlp;
  return out;
}

}  // namespace kf
