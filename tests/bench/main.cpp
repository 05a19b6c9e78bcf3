// Speed against references of the same run: `make bench` goes through all parts and ends with one table of what was measured beside what is
// wanted; `bench PART` is one of them alone (`bench lua`: crossings into Lua; `bench pieces`: fused ones; `bench steps` and `bench start`:
// the real program against PyTorch; a wrong PART lists all). Never a test, since a busy machine would fail it.

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/attach_bench.h"
#include "bench/checkpoint_bench.h"
#include "bench/compare.h"
#include "bench/data_bench.h"
#include "bench/generation_bench.h"
#include "bench/goals.h"
#include "bench/lua_bench.h"
#include "bench/memory.h"
#include "bench/neighbour_bench.h"
#include "bench/pieces.h"
#include "bench/profile_bench.h"
#include "bench/ranks_bench.h"
#include "bench/report_bench.h"
#include "bench/sinks_bench.h"
#include "bench/steps_bench.h"
#include "bench/sweep_bench.h"
#include "bench/tokenizers_bench.h"
#include "builtins/builtins.h"
#include "config/load/load.h"
#include "config/plan/derived.h"
#include "core/cores.h"
#include "core/processor.h"
#include "data/loader/loader.h"
#include "kernels/simd/isa.h"
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

/// A step of the engine and what feeds it, in this process.
void bench_loop(const Registries& registries) {
  const config::Config config = job(registries);
  bench_step(config, registries);
  bench_adamw(config, registries);
  bench_loss();
  bench_config(registries);
}

std::string first_line_of(const std::string& text) { return text.substr(0, text.find('\n')); }

struct Part {
  std::function<void(const Registries& registries, const std::string& argument, bench::Goals& goals)> run;
  const char* argument = "";  // what it takes; "": nothing
};

/// In the order in which `bench` alone goes through them, short ones first.
std::vector<std::pair<std::string, Part>> parts() {
  using R = const Registries&;
  using A = const std::string&;
  using G = bench::Goals&;
  return {{"pieces", {[](R r, A, G goals) { bench::bench_pieces(r, goals); }}},
          {"loop", {[](R r, A, G) { bench_loop(r); }}},
          {"lua", {[](R, A, G goals) { bench::bench_lua(goals); }}},
          {"profile", {[](R r, A, G) { bench::bench_profile(r); }}},
          {"data", {[](R, A, G) { bench::bench_data(); }}},
          {"generation", {[](R r, A, G) { bench::bench_generation(r); }}},
          {"attach", {[](R, A, G) { bench::bench_attach(); }}},
          {"sinks", {[](R, A, G) { bench::bench_sinks(); }}},
          {"report", {[](R, A, G) { bench::bench_report(); }}},
          {"tokenizers", {[](R, A, G goals) { bench::bench_tokenizers(goals); }}},
          {"checkpoint", {[](R r, A folder, G goals) { bench::bench_checkpoint(r, folder.empty() ? "." : folder, goals); }, "[FOLDER]"}},
          {"ranks", {[](R, A, G) { bench::bench_ranks(); }}},
          {"start", {[](R r, A, G goals) { bench::bench_start(r, goals); }}},
          {"sweep", {[](R, A, G) { bench::bench_sweep(); }}},
          {"neighbour", {[](R r, A model, G goals) { bench::bench_neighbour(r, model, goals); }, "[small | debug | tiny]"}},
          {"steps", {[](R r, A model, G goals) { bench::bench_steps(r, model, goals); }, "[small | debug | tiny]"}}};
}

/// A part that fails is a line of the last table, and the others go on.
void run_part(const std::string& name, const Part& part, const std::string& argument, bench::Goals& goals) {
  std::printf("\n## %s\n\n", name.c_str());
  std::fflush(stdout);
  try {
    part.run(native_registries(), argument, goals);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench %s: %s\n", name.c_str(), e.what());
    goals.failed(name, first_line_of(e.what()));
  }
}

int usage(const std::vector<std::pair<std::string, Part>>& parts) {
  std::fprintf(stderr, "usage: bench [PART]\n");
  for (const auto& [name, part] : parts) {
    std::fprintf(stderr, "       bench %s %s\n", name.c_str(), part.argument);
  }
  return 1;
}

int run_parts(const std::vector<std::string>& words) {
  if (words.size() == 2 && words[0] == "load-memory") {  // of bench checkpoint
    bench::bench_load_memory(native_registries(), words[1]);
    return 0;
  }
  const auto all = parts();
  const auto part = std::find_if(all.begin(), all.end(), [&](const auto& one) { return !words.empty() && one.first == words[0]; });
  if (!words.empty() && (part == all.end() || words.size() > (*part->second.argument == '\0' ? 1U : 2U))) {
    return usage(all);
  }
  std::printf(
      "%s, %s, %d threads; lines with \"x\" at their end: the fastest round of each, peak memory of tensors, then subject / reference\n",
      processor_name().c_str(), simd::name_of(simd::isa()), at::get_num_threads());
  bench::Goals goals;
  for (const auto& [name, one] : all) {
    if (words.empty() || name == words[0]) {
      run_part(name, one, words.size() > 1 ? words[1] : "", goals);
    }
  }
  goals.print();
  return goals.any_failed() ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    bench::count_memory();
    if (std::getenv("OMP_NUM_THREADS") == nullptr) {
      at::set_num_threads(own_cores().threads());  // as kf-host does
    }
    return run_parts({argv + 1, argv + argc});
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench: %s\n", e.what());
    return 1;
  }
}
