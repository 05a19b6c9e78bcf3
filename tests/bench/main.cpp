// Speed as ratios against a reference of the same run: `make bench`, or a part alone: `bench lua` (crossings into Lua), `bench data`,
// `bench pieces` (fused ones), `bench profile` (what is recorded of a step), `bench sinks` (of metrics), `bench ranks` (two processes
// against one), `bench attach` (a run that is spoken to), `bench report` (a page of runs), `bench checkpoint [FOLDER]` (saves and loads, on
// the disk of FOLDER), `bench steps [MODEL]` and `bench start` (the real program against PyTorch). Never a test, since a busy machine would
// fail it.

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/attach_bench.h"
#include "bench/checkpoint_bench.h"
#include "bench/compare.h"
#include "bench/data_bench.h"
#include "bench/generation_bench.h"
#include "bench/lua_bench.h"
#include "bench/memory.h"
#include "bench/neighbour_bench.h"
#include "bench/pieces.h"
#include "bench/profile_bench.h"
#include "bench/ranks_bench.h"
#include "bench/report_bench.h"
#include "bench/sinks_bench.h"
#include "bench/steps_bench.h"
#include "builtins/builtins.h"
#include "config/load/load.h"
#include "config/plan/derived.h"
#include "core/cores.h"
#include "data/loader/loader.h"
#include "model/transformer/build.h"
#include "optim/adamw.h"
#include "registry/registries.h"
#include "train/step/language.h"
#include "train/step/losses.h"
#include "train/step/stepper.h"

namespace {

using namespace kf;

config::Config job(const Registries& registries) {
  config::Request request;
  request.overrides = {"--model.dim=256",      "--model.n_layers=4",     "--model.n_heads=8",
                       "--model.n_kv_heads=4", "--model.vocab_size=512", "--model.max_seq_len=256",
                       "--train.seq_len=256",  "--train.batch_size=8",   "--train.mixed_precision=fp32"};
  return config::load_or_fail(request, registries.catalog()).config;
}

/// Square matrix products that add up to about `flops`.
bench::Work products(double flops) {
  constexpr std::int64_t n = 768;
  const double each = 2.0 * n * n * n;
  const int times = std::max(1, static_cast<int>(std::lround(flops / each)));
  const at::Tensor a = at::randn({n, n});
  const at::Tensor b = at::randn({n, n});
  at::Tensor c = at::empty({n, n});
  return {"matrix products of its flops", [=]() mutable {
            for (int i = 0; i < times; ++i) {
              at::mm_out(c, a, b);
            }
          }};
}

void bench_step(const config::Config& config, const Registries& registries) {
  const std::shared_ptr<Model> model = build_model(config, registries);
  materialize(*model, at::kCPU, at::kFloat, 1);
  AdamW optimizer(decay_groups(model->parameters(), 0.1), {});
  const CrossEntropy loss;
  Language objective(loss);
  Stepper stepper(*model, optimizer, objective, {});
  const std::unique_ptr<Loader> loader = make_train_loader(config, {});
  const double tokens = static_cast<double>(config.train.batch_size * config.train.seq_len);
  std::int64_t step = 0;
  bench::compare("training step", {"forward, backward, update", [&] { stepper.run(*loader, step++, 1e-4); }},
                 products(tokens * config::flops_per_token(config.model, config.train.seq_len)), 5);
  bench::compare("data", {"one batch", [&] { loader->batch(step++); }},
                 {"the training step that eats it", [&] { stepper.run(*loader, step++, 1e-4); }});
}

void bench_adamw(const config::Config& config, const Registries& registries) {
  const std::shared_ptr<Model> model = build_model(config, registries);
  materialize(*model, at::kCPU, at::kFloat, 1);
  const ParameterList parameters = model->parameters();
  for (const ParameterPtr& parameter : parameters) {
    parameter->set_gradient(at::randn(parameter->shape));
  }
  AdamW optimizer(decay_groups(parameters, 0.1), {});
  // The update reads four fp32 arrays and writes three: about the traffic of three and a half copies.
  const at::Tensor from = at::zeros({count_parameters(parameters) * 7 / 2});
  at::Tensor to = at::empty_like(from);
  bench::compare("adamw", {"one update", [&] { optimizer.step(1e-4); }}, {"copying the bytes that it moves", [&] { to.copy_(from); }});
}

void bench_loss() {
  const at::Tensor labels = at::randint(0, 8192, {1024}, at::kLong);
  const at::Tensor logits = at::randn({1024, 8192}).requires_grad_(true);
  const CrossEntropy loss;
  const auto backward = [&](const at::Tensor& value) {
    logits.mutable_grad() = at::Tensor();
    value.backward();
  };
  bench::compare(
      "cross entropy", {"sum and its gradient", [&] { backward(loss.sum(logits, labels)); }},
      {"at::cross_entropy_loss and its gradient", [&] { backward(at::cross_entropy_loss(logits, labels, {}, at::Reduction::Sum)); }});
}

void bench_config(const Registries& registries) {
  const config::Catalog catalog = registries.catalog();
  config::Request request;
  request.overrides = {"--model.dim=256", "--optimizer.lr=1e-3"};
  const at::Tensor a = at::randn({768, 768});
  bench::compare("settings", {"load and check a job", [&] { config::load(request, catalog); }},
                 {"one 768 x 768 matrix product", [&] { at::mm(a, a); }}, 0.3);
}

/// Everything that needs no argument, in turn.
void bench_all(const Registries& registries) {
  const config::Config config = job(registries);
  bench_step(config, registries);
  bench_adamw(config, registries);
  bench_loss();
  bench::bench_pieces(registries);
  bench_config(registries);
  bench::bench_profile(registries);
  bench::bench_data();
  bench::bench_generation(registries);
  bench::bench_lua();
  bench::bench_attach();
  bench::bench_sinks();
  bench::bench_ranks();
  bench::bench_report();
  bench::bench_start(registries);
  bench::bench_steps(registries, "");
}

struct Part {
  std::function<void(const Registries& registries, const std::string& argument)> run;
  const char* argument = "";  // what it takes; "": nothing
  bool ratios = false;        // prints lines of `compare`
};

std::map<std::string, Part> parts() {
  using R = const Registries&;
  using A = const std::string&;
  return {
      {"", {[](R r, A) { bench_all(r); }, "", true}},
      {"pieces", {[](R r, A) { bench::bench_pieces(r); }, "", true}},
      {"profile", {[](R r, A) { bench::bench_profile(r); }, "", true}},
      {"lua", {[](R, A) { bench::bench_lua(); }}},
      {"data", {[](R, A) { bench::bench_data(); }}},
      {"sinks", {[](R, A) { bench::bench_sinks(); }}},
      {"ranks", {[](R, A) { bench::bench_ranks(); }}},
      {"attach", {[](R, A) { bench::bench_attach(); }}},
      {"report", {[](R, A) { bench::bench_report(); }}},
      {"start", {[](R r, A) { bench::bench_start(r); }}},
      {"neighbour", {[](R r, A model) { bench::bench_neighbour(r, model); }, "[small | debug | tiny]"}},
      {"steps", {[](R r, A model) { bench::bench_steps(r, model); }, "[small | debug | tiny]"}},
      {"checkpoint", {[](R r, A folder) { bench::bench_checkpoint(r, folder.empty() ? "." : folder); }, "[FOLDER]"}},
      {"load-memory", {[](R r, A folder) { bench::bench_load_memory(r, folder); }, "CHECKPOINT"}},
  };
}

int usage(const std::map<std::string, Part>& parts) {
  std::fprintf(stderr, "usage: bench [PART]\n");
  for (const auto& [name, part] : parts) {
    std::fprintf(stderr, "       bench %s %s\n", name.c_str(), part.argument);
  }
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    bench::count_memory();
    if (std::getenv("OMP_NUM_THREADS") == nullptr) {
      at::set_num_threads(own_cores().threads());  // as kf-host does
    }
    const std::map<std::string, Part> all = parts();
    const auto part = all.find(argc > 1 ? argv[1] : "");
    const std::string argument = argc > 2 ? argv[2] : "";
    if (part == all.end() || argc > 3 || (*part->second.argument == '\0' && !argument.empty())) {
      return usage(all);
    }
    if (part->second.ratios) {
      std::printf("%d threads, fastest round of each, peak memory of tensors; the last columns are subject / reference: time, memory\n",
                  at::get_num_threads());
    }
    part->second.run(native_registries(), argument);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench: %s\n", e.what());
    return 1;
  }
}
