#include "bench/pieces.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bench/compare.h"
#include "bench/goals.h"
#include "config/load/load.h"
#include "data/loader/loader.h"
#include "kernels/gate/gate.h"
#include "kernels/global_norm/global_norm.h"
#include "kernels/kernels.h"
#include "kernels/layer_norm/layer_norm.h"
#include "kernels/linear_loss/linear_loss.h"
#include "kernels/product/product.h"
#include "kernels/rms_norm/rms_norm.h"
#include "model/draw.h"
#include "model/layer/norm.h"
#include "model/layer/score.h"
#include "model/layer/visibility.h"
#include "model/moe/moe_book.h"
#include "model/transformer/build.h"
#include "model/weight_unit.h"
#include "optim/adamw.h"
#include "optim/lion.h"
#include "optim/muon.h"
#include "registry/registries.h"
#include "train/step/language.h"
#include "train/step/losses.h"
#include "train/step/stepper.h"

namespace kf::bench {
namespace {

using Overrides = std::vector<std::string>;

config::Config job(const Registries& registries, Overrides overrides) {
  overrides.insert(overrides.end(),
                   {"--model.dim=256", "--model.n_layers=4", "--model.n_heads=8", "--model.n_kv_heads=4", "--model.vocab_size=512",
                    "--model.max_seq_len=512", "--train.seq_len=512", "--train.batch_size=4", "--train.mixed_precision=fp32"});
  config::Request request;
  request.overrides = std::move(overrides);
  return config::load_or_fail(request, registries.catalog()).config;
}

at::Tensor leaf(const std::vector<std::int64_t>& shape, at::ScalarType type = at::kFloat) {
  return at::randn(shape).to(type).requires_grad_();
}

const char* suffix_of(at::ScalarType type) { return type == at::kFloat ? " fp32" : " bf16"; }

/// f of the leaves and backward to them, whose gradients are dropped.
Work both_ways(std::string name, const std::vector<at::Tensor>& leaves, std::function<at::Tensor()> f) {
  return {std::move(name), [leaves, f = std::move(f)] {
            f().sum().backward();
            for (const at::Tensor& each : leaves) {
              each.mutable_grad() = at::Tensor();
            }
          }};
}

/// x W^T and its gradient of x, by kernels of our own and by oneDNN's, up to the size where our own end and beyond.
void bench_products() {
  for (const auto& [rows, in, out] : {std::tuple{256, 256, 256}, std::tuple{512, 256, 768}, std::tuple{2048, 256, 256},
                                      std::tuple{256, 1024, 1024}, std::tuple{2048, 256, 768}, std::tuple{2048, 1024, 1024}}) {
    const at::Tensor x = at::randn({rows, in}), weight = at::randn({out, in}), gradient = at::randn({rows, out});
    const auto work = [&](const char* name, const Products& chosen) {
      return Work{name, [=] {
                    set_products(chosen);
                    product_nt(x, weight);
                    product_nn(gradient, weight);
                  }};
    };
    compare("products " + std::to_string(rows) + " x " + std::to_string(in) + " x " + std::to_string(out),
            work("own kernels", {.fp32_onednn = true, .fp32_own = true}), work("oneDNN", {.fp32_onednn = true}), 0.2);
  }
  set_products({});
}

/// 4096 positions, 32000 words.
double bench_loss(at::ScalarType type) {
  const at::Tensor hidden = leaf({4096, 256}, type);
  const at::Tensor weight = leaf({32000, 256}, type);
  const at::Tensor labels = at::randint(0, 32000, {4096}, at::kLong);
  const OutputHead head{weight, 1, 0};
  const LinearLossOptions options{1.0 / 4096, 1e-4 / 4096, 512};
  return compare(
      std::string("head + loss") + suffix_of(type),
      both_ways("fused, 512 positions at a time", {hidden, weight}, [=] { return fused_linear_loss(hidden, head, labels, options).total; }),
      both_ways("all logits at once", {hidden, weight}, [=] { return plain_linear_loss(hidden, head, labels, options).total; }), 0.5);
}

/// Logits that are there already: 4096 positions, 8192 words.
double bench_cross_entropy(at::ScalarType type) {
  const at::Tensor logits = leaf({4096, 8192}, type);
  const at::Tensor labels = at::randint(0, 8192, {4096}, at::kLong);
  return compare(std::string("cross entropy") + suffix_of(type),
                 both_ways("rows", {logits}, [=] { return fused_cross_entropy(logits, labels); }),
                 both_ways("operators", {logits}, [=] { return plain_cross_entropy(logits, labels); }), 0.5);
}

struct AttentionCase {
  const char* title;
  std::int64_t batch, kv_heads, length, width;  // 8 heads
  std::int64_t window, document;                // 0 for none
};

/// The kernel of our own against another way: the formula, or LibTorch's kernel.
double bench_attention(const AttentionCase& c, at::ScalarType type, const char* other, AttentionRules::Backend backend,
                       const Kernels& kernels) {
  const auto heads = [&](std::int64_t n) { return leaf({c.batch, c.length, n, c.width}, type); };  // as projections make them
  const at::Tensor q = heads(8), k = heads(c.kv_heads), v = heads(c.kv_heads);
  ForwardContext context;
  if (c.document > 0) {
    context.visible = std::make_shared<Visibility>(at::arange(c.length).floor_divide(c.document).expand({c.batch, c.length}));
  }
  const auto work = [&](const char* name, AttentionRules::Backend chosen, const Kernels& table) {
    ScoreOptions options;
    options.rules.scale = 0.125;
    options.rules.backend = chosen;
    options.kernels = &table;
    if (c.window > 0) {
      options.reach = {Reach::Kind::local, c.window};
    }
    const Mixer mixer(options, Dropout(0, 1, 0, "scores"));
    return both_ways(name, {q, k, v}, [=] {
      return mixer.mix(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), {}, context, true).transpose(1, 2).flatten(2);
    });
  };
  return compare(std::string(c.title) + (type == at::kFloat ? " fp32" : " bf16"),
                 work("kernel by rows", AttentionRules::Backend::any, fused_kernels()), work(other, backend, kernels), 0.5);
}

double bench_attentions() {
  const AttentionCase whole{"attention 2048", 1, 8, 2048, 64, 0, 0}, window{"window of 256", 1, 8, 2048, 64, 256, 0};
  const double slower = std::max(bench_attention(whole, at::kFloat, "softmax(q k^T) v", AttentionRules::Backend::any, plain_kernels()),
                                 bench_attention(window, at::kFloat, "softmax(q k^T) v", AttentionRules::Backend::any, plain_kernels()));
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const AttentionCase& c :
         {AttentionCase{"8 x 256, kv 4", 8, 4, 256, 32, 0, 0}, whole, window, AttentionCase{"documents", 1, 8, 2048, 64, 0, 256}}) {
      bench_attention(c, type, "LibTorch's kernel", AttentionRules::Backend::flash, fused_kernels());
    }
  }
  return slower;
}

/// A module of one weight, materialised.
template <class Layer>
std::shared_ptr<Layer> ready(std::shared_ptr<Layer> layer) {
  materialize(layer->parameters(), at::kCPU, at::kFloat, 1);
  return layer;
}

/// The slowest, in times of its twin.
double bench_elementwise(at::ScalarType type) {
  const std::string suffix = suffix_of(type);
  const at::Tensor x = leaf({4096, 1024}, type);
  const auto norm = [&](const char* name, const Kernels& kernels) {
    NormOptions options;
    options.kernels = &kernels;
    const auto layer = ready(std::make_shared<RmsNorm>(1024, options));
    return both_ways(name, {x}, [=] { return layer->forward(x); });
  };
  double slower = compare("rmsnorm" + suffix, norm("fused", fused_kernels()), norm("plain operators", plain_kernels()), 0.5);
  const at::Tensor up = leaf({4096, 1024}, type), factor = leaf({1024});
  const auto sum_and_norm = [&](const char* name, const Kernels& kernels) {
    return both_ways(name, {x, up, factor}, [=, &kernels] {
      const SumAndNorm out = kernels.add_rms_norm(x, up, factor, 1e-5);
      return out.sum + out.norm;
    });
  };
  const at::Tensor bias = leaf({1024});
  const auto layer_norm = [&](const char* name, const Kernels& kernels) {
    return both_ways(name, {x, factor, bias}, [=, &kernels] { return kernels.layer_norm(x, {factor, bias}, 1e-5); });
  };
  slower =
      std::max(slower, compare("layernorm" + suffix, layer_norm("fused", fused_kernels()), layer_norm("LibTorch's", plain_kernels()), 0.5));
  const auto sum_and_layer_norm = [&](const char* name, const Kernels& kernels) {
    return both_ways(name, {x, up, factor, bias}, [=, &kernels] {
      const SumAndNorm out = kernels.add_layer_norm(x, up, {factor, bias}, 1e-5);
      return out.sum + out.norm;
    });
  };
  slower = std::max(slower, compare("add + layernorm" + suffix, sum_and_layer_norm("fused", fused_kernels()),
                                    sum_and_layer_norm("LibTorch's", plain_kernels()), 0.5));
  slower = std::max(slower, compare("add + rmsnorm" + suffix, sum_and_norm("fused", fused_kernels()),
                                    sum_and_norm("plain operators", plain_kernels()), 0.5));
  for (const auto& [kind, act] : {std::pair{GateKind::silu, "silu"}, std::pair{GateKind::gelu, "gelu"}}) {
    const auto gate = [&, of = kind](const char* name, const Kernels& kernels) {
      return both_ways(name, {x, up}, [=, &kernels] { return kernels.gate(of, x, up); });
    };
    slower = std::max(slower, compare(std::string(act) + " gate" + suffix, gate("fused", fused_kernels()),
                                      gate("plain operators", plain_kernels()), 0.5));
  }
  const at::Tensor q = leaf({2, 2048, 8, 64}, type);  // (B, T, H, D), as projections give them
  const at::Tensor angles = at::rand({2048, 32});
  const at::Tensor cos = angles.cos(), sin = angles.sin();
  const double rotation =
      compare("rotation" + suffix, both_ways("fused", {q}, [=] { return fused_kernels().rotation(q.transpose(1, 2), cos, sin, false); }),
              both_ways("plain operators", {q}, [=] { return plain_kernels().rotation(q.transpose(1, 2), cos, sin, false); }), 0.5);
  return std::max(slower, rotation);
}

void bench_first_values() {
  const Shape shape{4096, 1024};
  const at::Tensor values = at::empty(shape);
  compare("first values", {"by element, 4 M of them", [=] { fill_normal(values, shape, Range::whole(shape), 1, 0.02); }},
          {"normal_ of ATen", [=] { values.normal_(0, 0.02, at::detail::createCPUGenerator(1)); }}, 0.5);
}

/// The experts' layer forward and backward, sorted rows against one expert after the other.
double bench_experts(const Registries& registries, at::ScalarType type) {
  const auto work = [&](const char* name, const char* form) {
    const config::Config config = job(registries, {"--model.num_experts=16", "--model.moe_top_k=2", "--model.moe_ffn_dim=256",
                                                   "--model.moe_shared_experts=1", std::string("--model.moe_impl=") + form});
    const std::shared_ptr<Model> model = build_model(config, registries);
    materialize(*model, at::kCPU, type, 1);
    const at::Tensor x = leaf({8, 256, 256}, type);
    return Work{name, [=] {
                  MoeBook(*model).layers().front()->forward(x, ForwardContext()).sum().backward();
                  x.mutable_grad() = at::Tensor();
                  for (const ParameterPtr& parameter : model->parameters()) {
                    parameter->clear_gradient();
                  }
                }};
  };
  return compare(type == at::kFloat ? "experts fp32" : "experts bf16", work("grouped, 16 experts", "grouped"),
                 work("one after the other", "loop"));
}

/// Weights with gradients, their moments, and the values that forward reads.
struct Trained {
  Trained(const Registries& registries, at::ScalarType type)
      : model(build_model(job(registries, {"--model.vocab_size=8192"}), registries)) {
    materialize(*model, at::kCPU, type, 1);
    for (const ParameterPtr& parameter : model->parameters()) {
      parameter->set_gradient(at::randn(parameter->shape).to(parameter->value.scalar_type()));
      weights.push_back(parameter->master.detach());
      values.push_back(parameter->value.detach());
      gradients.push_back(parameter->stored_gradient());
      m.push_back(at::zeros_like(weights.back()));
      v.push_back(at::zeros_like(weights.back()));
      steps.push_back(at::ones({}));
    }
  }
  std::shared_ptr<Model> model;  // owns what the optimizer moves
  std::vector<at::Tensor> weights, values, gradients, m, v, steps;
};

/// Clipped, moved and ready for the next forward: in one, and as LibTorch's kernel does it between passes of their own.
double bench_adamw(const Registries& registries, at::ScalarType type, at::ScalarType type_m, at::ScalarType type_v,
                   const std::string& name) {
  const auto one = std::make_shared<Trained>(registries, type), passes = std::make_shared<Trained>(registries, type);
  AdamWOptions options;
  options.type_m = type_m;
  options.type_v = type_v;
  const auto optimizer = std::make_shared<AdamW>(decay_groups(one->model->parameters(), 0.1), options);
  const at::Tensor factor = at::full({}, 0.999999);
  const Work fused{"one pass", [=] {
                     optimizer->step_with(1e-4, {factor, {}});
                     publish(one->model->parameters());
                   }};
  const Work apart{"clip, LibTorch's kernel, copies", [=] {
                     const at::NoGradGuard no_grad;
                     std::vector<at::Tensor> wide;
                     for (const at::Tensor& gradient : passes->gradients) {
                       wide.push_back(gradient.mul_(factor).to(at::kFloat));
                     }
                     at::_foreach_add_(passes->steps, 1);
                     at::_fused_adamw_(passes->weights, wide, passes->m, passes->v, {}, passes->steps, 1e-4, 0.9, 0.95, 0.1, 1e-8, false,
                                       false);
                     for (std::size_t i = 0; i < wide.size(); ++i) {
                       if (!passes->values[i].is_same(passes->weights[i]) && type != at::kFloat) {
                         passes->values[i].copy_(passes->weights[i]);
                       }
                     }
                   }};
  return compare("clip + adamw" + name, fused, apart, 0.5);
}

/// The same of other optimizers, against a pass an operation. Of Muon one iteration, so that its products hide less.
void bench_updates(const Registries& registries, at::ScalarType type) {
  const auto compare_both = [&](const std::string& name, const auto& make) {
    const auto work = [&](const char* title, const Kernels& kernels) {
      const auto trained = std::make_shared<Trained>(registries, type);
      const std::shared_ptr<Optimizer> optimizer = make(*trained, kernels);
      const at::Tensor factor = at::full({}, 0.999999);
      return Work{title, [=] {
                    optimizer->step_with(1e-4, {factor, {}});
                    publish(trained->model->parameters());
                  }};
    };
    compare("clip + " + name + suffix_of(type), work("one pass", fused_kernels()), work("a pass an operation", plain_kernels()), 0.5);
  };
  compare_both("lion", [](const Trained& trained, const Kernels& kernels) {
    return std::make_shared<Lion>(decay_groups(trained.model->parameters(), 0.1), LionOptions{0.9, 0.99, &kernels});
  });
  compare_both("muon", [](const Trained& trained, const Kernels& kernels) {
    MuonOptions options;
    options.ns_steps = 1;
    options.lr = options.adam_lr = 1e-4;
    options.adam.kernels = &kernels;
    return std::make_shared<Muon>(decay_groups(trained.model->parameters(), 0.1), options);
  });
}

double bench_norm(const Registries& registries, at::ScalarType type) {
  const auto all = std::make_shared<Trained>(registries, type);
  const Work one{"one loop", [=] { global_norm(all->gradients); }};
  const Work each{"_foreach_norm", [=] { at::linalg_vector_norm(at::stack(at::_foreach_norm(all->gradients, 2, at::kFloat)), 2); }};
  return compare(std::string("norm of gradients") + suffix_of(type), one, each, 0.5);
}

/// A training step of a job as it is, and with train.compile_model = false.
double bench_step(const Registries& registries, const std::string& title, const Overrides& overrides) {
  const auto work = [&](const char* name, bool fused) {
    Overrides all = overrides;
    all.push_back(fused ? "--train.compile_model=true" : "--train.compile_model=false");
    struct Trainee {
      config::Config config;
      std::shared_ptr<Model> model;
      std::unique_ptr<Optimizer> optimizer;
      std::unique_ptr<Loss> loss;
      std::unique_ptr<Objective> objective;
      std::unique_ptr<Stepper> stepper;
      std::unique_ptr<Loader> loader;
      std::int64_t step = 0;
    };
    const auto t = std::make_shared<Trainee>();
    t->config = job(registries, all);
    t->model = build_model(t->config, registries);
    materialize(*t->model, at::kCPU, at::kFloat, 1);
    t->optimizer = make_part(registries.optimizer, "adamw", t->config, registries, decay_groups(t->model->parameters(), 0.1));
    t->loss = make_part(registries.loss, "fused_linear_cross_entropy", t->config, registries);
    t->objective = std::make_unique<Language>(*t->loss);
    t->stepper = std::make_unique<Stepper>(*t->model, *t->optimizer, *t->objective, StepperOptions());
    t->loader = make_train_loader(t->config, {});
    return Work{name, [t] { t->stepper->run(*t->loader, t->step++, 1e-4); }};
  };
  return compare(title, work("train.compile_model = true", true), work("train.compile_model = false", false), 3);
}

}  // namespace

void bench_pieces(const Registries& registries, Goals& goals) {
  const auto at_most = [&](const char* what, std::initializer_list<double> ratios) { goals.at_most(what, std::max(ratios), 1, "x"); };
  bench_products();
  at_most("head and loss / its twin", {bench_loss(at::kFloat), bench_loss(at::kBFloat16)});
  at_most("cross entropy / its twin", {bench_cross_entropy(at::kFloat), bench_cross_entropy(at::kBFloat16)});
  at_most("attention / its twin", {bench_attentions()});
  bench_first_values();
  at_most("norms, gates and rotation / their twins, slowest", {bench_elementwise(at::kFloat), bench_elementwise(at::kBFloat16)});
  at_most("grouped experts / one after the other", {bench_experts(registries, at::kFloat), bench_experts(registries, at::kBFloat16)});
  at_most("clip and adamw / apart", {bench_adamw(registries, at::kFloat, at::kFloat, at::kFloat, " fp32"),
                                     bench_adamw(registries, at::kBFloat16, at::kFloat, at::kFloat, " bf16")});
  bench_adamw(registries, at::kFloat, at::kChar, at::kByte, " int8 moments");
  bench_updates(registries, at::kFloat);
  bench_updates(registries, at::kBFloat16);
  bench_adamw(registries, at::kFloat, at::kFloat8_e4m3fn, at::kFloat8_e5m2, " fp8 moments");
  at_most("norm of gradients / apart", {bench_norm(registries, at::kFloat), bench_norm(registries, at::kBFloat16)});
  const Overrides large{"--model.vocab_size=8192", "--train.ce_chunk_size=512"};
  const double dense = bench_step(registries, "dense step", large);
  const double experts = bench_step(
      registries, "experts step",
      {"--model.vocab_size=8192", "--train.ce_chunk_size=512", "--model.num_experts=8", "--model.moe_top_k=2", "--model.moe_ffn_dim=256"});
  at_most("a step / with train.compile_model = false", {dense, experts});
}

}  // namespace kf::bench
