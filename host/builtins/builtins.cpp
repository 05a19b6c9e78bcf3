// Every native part, listed by hand: registration order is the order of `kf-host registry`.

#include <iostream>
#include <utility>

#include "builtins/builtins.h"
#include "builtins/native.h"
#include "config/plan/batch_plan.h"
#include "config/plan/derived.h"
#include "config/plan/kernel_set.h"
#include "config/schema/config.h"
#include "generate/generate.h"
#include "kernels/kernels.h"
#include "metrics/background.h"
#include "metrics/console.h"
#include "metrics/csv.h"
#include "metrics/jsonl.h"
#include "metrics/mlflow/mlflow.h"
#include "metrics/prometheus/prometheus.h"
#include "metrics/tensorboard/tensorboard.h"
#include "metrics/wandb/wandb.h"
#include "model/layer/grouped_attention.h"
#include "model/layer/latent_attention.h"
#include "model/layer/lora.h"
#include "model/layer/place.h"
#include "model/layer/xielu.h"
#include "model/moe/topk_router.h"
#include "model/transformer/parts.h"
#include "model/transformer/transformer.h"
#include "optim/schedules.h"
#include "registry/registries.h"
#include "train/step/fused_cross_entropy.h"
#include "train/step/losses.h"

namespace kf {
namespace {

void add_models(Registries& r) {
  r.model.add(native("transformer", "Decoder-only transformer with pre-norm blocks (Llama)."),
              [](const PartArgs& a) { return std::make_shared<Transformer>(a); });
}

void add_blocks(Registries& r) {
  r.block.add(native("standard", "Attention, then mlp, each on a residual branch; norms by model.norm_placement."),
              [](const PartArgs& a, const Place& place) { return std::make_shared<StandardBlock>(a, place); });
  r.attention.add(native("gqa", "Grouped queries (Ainslie et al. 2023), rotary positions, sliding windows, sinks, caps."),
                  [](const PartArgs& a, const Place& place) { return std::make_shared<GroupedAttention>(a, place); });
  r.attention.add(native("mla", "Multi-head latent attention (DeepSeek V2), by the mla_ keys."),
                  [](const PartArgs& a, const Place& place) { return std::make_shared<LatentAttention>(a, place); });
}

void add_adapters(Registries& r) {
  r.adapter.add(native("lora", "W x + (alpha / rank) B A x with a frozen W (Hu et al. 2021); adapter.rank, alpha, dropout."),
                [](const PartArgs& a, const AdapterPlace& place) { return std::make_shared<Lora>(a.config, place); });
}

void add_norms(Registries& r) {
  r.norm.add(native("rmsnorm", "x / rms(x) * weight (Zhang and Sennrich 2019)."),
             [](const PartArgs& a, const Place& place) { return std::make_shared<RmsNorm>(place.dim, norm_options(a)); });
  r.norm.add(native("layernorm", "(x - mean) / std * weight + bias (Ba et al. 2016)."),
             [](const PartArgs& a, const Place& place) { return std::make_shared<LayerNorm>(place.dim, norm_options(a)); });
}

void add_mlps(Registries& r) {
  const auto add = [&](const std::string& name, const std::string& activation, std::string doc) {
    r.mlp.add(native(name, std::move(doc)),
              [activation](const PartArgs& a, const Place& place) { return native_mlp(a, activation, place.dim, place.hidden); });
  };
  add("swiglu", "silu", "down(silu(gate x) * up x) (Shazeer 2020); activation = \"silu\".");
  add("standard_gelu", "gelu", "down(gelu(up x)) with the exact GELU; activation = \"gelu\". mlp_gated makes it GeGLU.");
  add("standard_relu", "relu", "down(relu(up x)); activation = \"relu\".");
  add("gelu_tanh", "gelu_tanh", "down(gelu(up x)) with the tanh approximation (GPT-2, Gemma).");
  add("relu2", "relu2", "down(relu(up x)^2) (So et al. 2021).");
  add("quick_gelu", "quick_gelu", "down(h sigmoid(1.702 h)), h = up x.");
  add("tanh", "tanh", "down(tanh(up x)).");
  add("swiglu_oai", "swiglu_oai", "down(g sigmoid(1.702 g) (u + 1)) with clamped g = gate x and u = up x (gpt-oss); needs mlp_act_limit.");
  r.mlp.add(native("xielu", "down(xIELU(up x)), whose two slopes are learned (Huang and Schlag 2024; Apertus)."),
            [](const PartArgs& a, const Place& place) { return std::make_shared<XieluMlp>(mlp_options(a, place.dim, place.hidden)); });
}

void add_routers(Registries& r) {
  const auto add = [&](const char* name, std::string doc) {
    r.router.add(native(name, std::move(doc)),
                 [](const PartArgs& a, const Place& place) { return std::make_shared<TopKRouter>(topk_router_options(a, place)); });
  };
  add("softmax_topk", "Top k of the softmax over all experts, divided by their sum (Mixtral, Qwen 3).");
  add("sigmoid_topk", "Top k of sigmoid + selection bias, weights from the sigmoids over their sum; the bias follows a running mean.");
  add("softmax", "Top k of the softmax over all experts; moe_norm_topk divides by their sum (DeepSeek V2).");
  add("sigmoid",
      "Top k of sigmoid + selection bias in groups, weights over their sum (DeepSeek V3); moe_bias_rule = \"sign\" trains the bias.");
  add("softmax_normed",
      "As softmax_topk of the normalised input times a learned vector / sqrt(dim); each expert has a learned factor besides (Gemma 4).");
  add("sqrtsoftplus", "As sigmoid, with the score sqrt(ln(1 + e^x)).");
}

void add_losses(Registries& r) {
  const auto low = [](const PartArgs& a) { return a.config.model.logits_dtype == "compute"; };
  r.loss.add(native("cross_entropy", "Cross entropy, in fp32 unless model.logits_dtype = \"compute\"."),
             [low](const PartArgs& a) { return std::make_unique<CrossEntropy>(low(a), *a.kernels); });
  r.loss.add(native("chunked_cross_entropy", "Cross entropy over pieces of train.ce_chunk_size positions."), [low](const PartArgs& a) {
    const std::int64_t chunk = a.config.train.ce_chunk_size;
    return std::make_unique<ChunkedCrossEntropy>(chunk == 0 ? 4096 : chunk, low(a), *a.kernels);
  });
  r.loss.add(native("fused_linear_cross_entropy",
                    "The head's product and cross entropy, train.ce_chunk_size positions at a time: all logits are never held."),
             [low](const PartArgs& a) {
               const config::TrainConfig& t = a.config.train;
               return std::make_unique<FusedCrossEntropy>(t.ce_chunk_size == 0 ? 4096 : t.ce_chunk_size, *a.kernels, low(a));
             });
}

void add_schedules(Registries& r) {
  const auto add = [&](const std::string& name, std::string doc) {
    r.scheduler.add(native(name, std::move(doc)), [name](const PartArgs& a, const ScheduleSpan& span) {
      const config::TrainConfig& t = a.config.train;
      // Of an update on all ranks.
      const auto sequences = static_cast<double>(config::BatchPlan(t, span.data_ranks).sequences(0) * span.data_ranks);
      return make_native_schedule(name, a.config.scheduler, span.max_steps,
                                  {a.config.optimizer.lr, sequences, static_cast<double>(t.seq_len)});
    });
  };
  add("cosine", "Warm-up, then half a cosine down to the floor.");
  add("linear", "Warm-up, then a line down to the floor.");
  add("wsd", "Warm-up, stable_steps at the peak, then a decay of wsd_decay_type.");
  add("constant", "Warm-up, then the peak.");
  add("rex", "Warm-up, then (1 - p)^rex_alpha down to the floor.");
  add("none", "The peak from the first step on.");
  add("inv_sqrt", "Warm-up, then 1 / sqrt(step / inv_sqrt_timescale), at most the peak and at least the floor.");
  add("inv", "Warm-up, then 1 / (1 + c t) so that the floor is reached after decay_steps.");
  add("power", "Warm-up, then the power law of the power schedule, power_a and power_b, capped at the peak (Shen et al. 2024).");
}

/// power2: the window's start and the powers of two behind it.
bool power_of_two(std::int64_t start, std::int64_t stop, std::int64_t step) {
  const std::int64_t past = step - start;
  return past >= 0 && step <= stop && (past & (past - 1)) == 0;
}

void add_run_parts(Registries& r) {
  r.sampler.add(native("sample", "Temperature, top-k, top-p, then a draw (Holtzman et al. 2020)."),
                [](const PartArgs&) { return plain_sampler(); });
  r.ckpt_strategy.add(native("interval", "Every checkpoint.interval steps."), [](const PartArgs& a) -> CheckpointStrategy {
    return [interval = a.config.checkpoint.interval](std::int64_t, std::int64_t, std::int64_t step) { return step % interval == 0; };
  });
  r.ckpt_strategy.add(native("power2", "start, start + 1, + 2, + 4, + 8, ... of a window, of the run where there is none."),
                      [](const PartArgs&) -> CheckpointStrategy { return power_of_two; });
}

constexpr std::size_t kQueue = 4096;  // events

/// Behind a queue: neither a slow disk nor what a sink makes of an event costs the run anything. Saves and the end wait for it; with
/// checkpoint.on_error = "stop" the run ends behind the first boundary that knows of a fault, and its checkpoint has the rows that wait.
template <class T>
void add_queued(Registries& r, const char* name, std::string doc, std::unique_ptr<T> (*make)(const fs::path& run_dir)) {
  r.sink.add(native(name, std::move(doc)),
             [name, make](const PartArgs&, const fs::path& run_dir) { return in_background(make(run_dir), kQueue, name); });
}

template <class T>
std::unique_ptr<T> tracker(const fs::path& /*run_dir*/) {
  return std::make_unique<T>();
}

void add_sinks(Registries& r) {
  r.sink.add(native("console", "The table of logged steps on the terminal, with a progress bar where it can be redrawn."),
             [](const PartArgs&, const fs::path&) { return std::make_unique<ConsoleSink>(std::cout, stdout_options()); });
  add_queued<JsonlSink>(r, "jsonl",
                        "metrics.jsonl in the run's folder: a JSON object a logged step and one an evaluation; a result's history.",
                        [](const fs::path& run_dir) { return std::make_unique<JsonlSink>(run_dir / "metrics.jsonl"); });
  add_queued<CsvSink>(r, "csv", "metrics.csv in the run's folder: a line a logged step.",
                      [](const fs::path& run_dir) { return std::make_unique<CsvSink>(run_dir / "metrics.csv"); });
  add_queued<TensorBoardSink>(r, "tensorboard",
                              "TensorBoard's event files in metrics.tensorboard_dir: numbers, texts, histograms, settings.",
                              tracker<TensorBoardSink>);
  add_queued<WandbSink>(r, "wandb", "An offline run of Weights & Biases in the run's folder, for `wandb sync`.", tracker<WandbSink>);
  add_queued<MlflowSink>(r, "mlflow", "MLflow's file store in metrics.mlflow_dir: numbers and settings.", tracker<MlflowSink>);
  add_queued<PrometheusSink>(r, "prometheus", "The last numbers over HTTP, in Prometheus' text format; metrics.prometheus_port.",
                             tracker<PrometheusSink>);
}

const Kernels* kernels_of(const config::Config& config) {
  return config::kernel_set(config.train) == config::KernelSet::fused ? &fused_kernels() : &plain_kernels();
}

}  // namespace

Registries native_registries() {
  Registries r;
  r.kernels_of = kernels_of;
  add_models(r);
  add_blocks(r);
  add_norms(r);
  add_mlps(r);
  add_routers(r);
  add_adapters(r);
  add_losses(r);
  add_native_optimizers(r);
  add_schedules(r);
  add_run_parts(r);
  add_sinks(r);
  return r;
}

}  // namespace kf
