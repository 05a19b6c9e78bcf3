// The estimate of memory against what a step takes: torch's allocator reports every tensor of this thread.

#include "train/loop/memory_estimate.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "builtins/builtins.h"
#include "config/plan/derived.h"
#include "optim/state_bytes.h"
#include "support/tensor_memory.h"
#include "support/tiny.h"
#include "support/wide_config.h"

namespace kf::test {
namespace {

struct Peaks {
  double estimate;
  double measured;
  std::string moment;
};

/// Two updates of a model: from the second on everything is there.
Peaks peaks_of(const config::Config& config) {
  const auto watch = std::make_shared<TensorMemory>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, watch);
  const at::ScalarType compute = config.train.mixed_precision == "bf16" ? at::kBFloat16 : at::kFloat;
  Bench bench(config, compute);
  sum_gradients_in(config.train.grad_dtype == "bf16" ? at::kBFloat16 : at::kFloat, bench.model->parameters());
  const std::int64_t rows = config.train.batch_size;
  const at::Tensor tokens = random_tokens(rows, config.train.seq_len, 3, config.model.vocab_size);
  FixedLoader data({make_batch(tokens, tokens.roll(-1, 1))});
  bench.step(data, 0, 1e-3);
  watch->reset();
  bench.step(data, 1, 1e-3);
  const MemoryEstimate estimate = training_memory(config, bench.model->parameters());
  return {estimate.total(), watch->most(), estimate.moment};
}

/// A LoRA wide enough to be seen beside every linear layer.
config::Config adapted_config() {
  config::Config config = wide_config();
  config.adapter.name = "lora";
  config.adapter.rank = 64;
  config.adapter.targets = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"};
  return config;
}

}  // namespace

// What the estimate leaves out or counts twice is transient: a tensor of the residual stream or of the feed-forward width a moment earlier
// or later. Those are at most a block's own share of the total, which with four blocks is a quarter.
TEST_CASE("memory: the estimate is within a quarter of what a step takes", "[memory]") {
  const auto agrees = [](const config::Config& config) {
    const Peaks peaks = peaks_of(config);
    CAPTURE(peaks.estimate, peaks.measured, peaks.moment);
    CHECK(peaks.estimate > 0.75 * peaks.measured);
    CHECK(peaks.estimate < 1.25 * peaks.measured);
  };
  SECTION("fp32") { agrees(wide_config()); }
  SECTION("bf16") {
    config::Config config = wide_config();
    config.train.mixed_precision = "bf16";
    agrees(config);
  }
  SECTION("attention by rows, which has no scores and repeats no heads") {
    config::Config config = wide_config();
    config.model.n_kv_heads = 1;
    config.model.attn_softcap = 5;
    config.model.attn_sink = true;
    config.train.mixed_precision = GENERATE(as<std::string>{}, "fp32", "bf16");
    agrees(config);
  }
  SECTION("full recomputation") {
    config::Config config = wide_config();
    config.train.activation_checkpointing = "full";
    config.train.batch_size = 16;
    agrees(config);
  }
  SECTION("selective recomputation") {
    config::Config config = wide_config();
    config.train.activation_checkpointing = "selective";
    config.train.batch_size = 16;
    agrees(config);
  }
  SECTION("a named policy of recomputation") {
    config::Config config = wide_config();
    config.train.activation_checkpointing = "save_dot_except_mlp";
    config.train.batch_size = 16;
    agrees(config);
  }
  SECTION("results kept by name") {
    config::Config config = wide_config();
    config.train.activation_checkpointing = "selective";
    config.train.remat_save = {"qkv", "context", "up"};
    config.train.batch_size = 16;
    agrees(config);
  }
  SECTION("other heads in global layers, normed values, a gate of attention") {
    config::Config config = wide_config();
    config.model.layer_pattern = {"local", "global"};
    config.model.window = 32;
    config.model.global_head_dim = 64;
    config.model.global_kv_heads = 1;
    config.model.v_norm = "plain";
    config.model.attn_gate = "element";
    agrees(config);
  }
  SECTION("the fused loss") {
    config::Config config = wide_config();
    config.train.loss_fn = "fused_linear_cross_entropy";
    agrees(config);
  }
  SECTION("several micro-batches") {
    config::Config config = wide_config();
    config.train.grad_accum_steps = 2;
    config.train.batch_size = 2;
    agrees(config);
  }
  SECTION("several micro-batches with gradients in bf16") {
    config::Config config = wide_config();
    config.train.mixed_precision = "bf16";
    config.train.grad_dtype = "bf16";
    config.train.grad_accum_steps = 2;
    config.train.batch_size = 2;
    agrees(config);
  }
  SECTION("experts") {
    config::Config config = wide_config();
    config.model.num_experts = 4;
    config.model.moe_top_k = 2;
    agrees(config);
  }
  SECTION("latent attention") {
    config::Config config = wide_config();
    config.model.attention = "mla";
    config.model.mla_kv_rank = 64;
    config.model.mla_nope_dim = 32;
    config.model.mla_rope_dim = 16;
    config.model.mla_v_dim = 32;
    agrees(config);
  }
  SECTION("adapters") { agrees(adapted_config()); }
  SECTION("adapters with dropout") {
    config::Config config = adapted_config();
    config.adapter.dropout = 0.1;
    agrees(config);
  }
  SECTION("adapters with selective recomputation") {
    config::Config config = adapted_config();
    config.train.activation_checkpointing = "selective";
    config.train.batch_size = 16;
    agrees(config);
  }
  SECTION("adapters with results kept by name") {
    config::Config config = adapted_config();
    config.train.activation_checkpointing = "selective";
    config.train.remat_save = {"qkv", "context", "up"};
    config.train.batch_size = 16;
    agrees(config);
  }
  SECTION("large weights, few tokens: the update is the fullest moment") {
    config::Config config = wide_config();
    config.model.dim = 256;
    config.train.batch_size = 1;
    config.train.seq_len = 16;
    agrees(config);
  }
}

TEST_CASE("memory: the state of every native optimizer is known to the byte, but for counters", "[memory]") {
  const config::Config base = wide_config();
  const Registries registries = native_registries();
  const config::Catalog catalog = registries.catalog();
  for (const config::PartInfo& part : catalog.at("optimizer")) {
    config::Config config = base;
    config.optimizer.name = part.name;
    config.optimizer.sgd_momentum = 0.9;
    config.train.batch_size = 1;
    CAPTURE(part.name);
    Bench bench(config);
    const at::Tensor tokens = random_tokens(1, 32, 3, config.model.vocab_size);
    FixedLoader data({make_batch(tokens, tokens.roll(-1, 1))});
    bench.step(data, 0, 1e-3);
    bench.step(data, 1, 1e-3);
    double bytes = 0;
    for (const auto& [name, tensor] : bench.optimizer->state().tensors) {
      bytes += static_cast<double>(tensor.nbytes());
    }
    const OptimizerBytes estimate = optimizer_bytes(config, bench.model->parameters());
    CHECK(estimate.known);
    CHECK(std::abs(estimate.state - bytes) <= 8 * static_cast<double>(bench.model->parameters().size()));  // a counter a weight
  }
}

TEST_CASE("memory: the weights of a run are known to the byte, frozen ones in 16 bits alone", "[memory]") {
  config::Config config = wide_config();
  config.train.mixed_precision = "bf16";
  config.train.param_dtype = GENERATE("fp32", "bf16");
  SECTION("all train") {}
  SECTION("the last block trains") { config.train.trainable = {"layers.3.*"}; }
  SECTION("adapters train") { config.adapter = adapted_config().adapter; }
  Bench bench(config, at::kBFloat16);
  std::map<void*, double> held;  // master and value may be one
  for (const ParameterPtr& parameter : bench.model->parameters()) {
    for (const at::Tensor& tensor : {parameter->value, parameter->kept()}) {
      held[tensor.data_ptr()] = static_cast<double>(tensor.nbytes());
    }
  }
  double bytes = 0;
  for (const auto& [place, size] : held) {
    bytes += size;
  }
  const MemoryEstimate estimate = training_memory(config, bench.model->parameters());
  CHECK(estimate.of("weights") + estimate.of("16-bit weights") == bytes);
}

TEST_CASE("memory: what would help is named with what it makes of the job", "[memory]") {
  config::Config config = wide_config();
  config.train.batch_size = 64;
  const ParameterList parameters = tiny_model(config)->parameters();
  const double now = training_memory(config, parameters).total();
  const Savers savers = memory_savers(config, parameters);
  REQUIRE_FALSE(savers.empty());
  for (const auto& [change, total] : savers) {
    CHECK(total < 0.95 * now);
  }
  CHECK(std::any_of(savers.begin(), savers.end(), [](const auto& one) { return one.first.find("batch_size = 1") != std::string::npos; }));
}

TEST_CASE("memory: adapters are counted by their layers", "[memory]") {
  config::Config config = wide_config();
  const auto activations = [&config] { return training_memory(config, tiny_model(config)->parameters()).of("activations"); };
  const double without = activations();
  config.adapter.name = "lora";
  config.adapter.rank = 16;
  config.adapter.targets = {"q_proj", "layers.1.mlp.down_proj"};
  const double tokens = 4 * 128, layers = 4;
  const double hidden = static_cast<double>(config::ffn_hidden_dim(config.model));  // layer 1 is no node any more, and keeps act(gate) up
  CHECK(activations() - without == 4 * tokens * (16 * (layers + 1) + hidden));
  config.adapter.dropout = 0.1;  // inputs of 128 numbers, of the feed-forward layer's width in the other
  CHECK(activations() - without == 4 * tokens * (16 * (layers + 1) + 2 * (128 * layers + hidden) + hidden));
}

TEST_CASE("memory: generation counts the keys and values that it keeps", "[memory]") {
  const config::Config config = wide_config();
  const ParameterList parameters = tiny_model(config)->parameters();
  const MemoryEstimate estimate = inference_memory(config, parameters, 3, 100);
  CHECK(estimate.of("keys and values") ==
        4 * 4.0 * 3 * 100 * (2 * 2 * 32));  // layers, bytes, texts, positions, keys and values of two heads
  CHECK(estimate.moment == "generation");
}

}  // namespace kf::test
