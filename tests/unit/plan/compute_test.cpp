// How long a rank computes.

#include "plan/compute.h"
#include "unit/plan/model.h"

#include <catch2/catch.hpp>

namespace kf::plan::test {
namespace {

config::Config job() {
  config::Config c;
  c.model.dim = 8192;
  c.model.n_layers = 4;
  c.model.n_heads = 64;
  c.model.n_kv_heads = 64;
  c.model.ffn_hidden_dim = 32768;
  c.model.vocab_size = 65536;
  c.train.batch_size = 1;
  c.train.seq_len = 4096;
  c.train.mixed_precision = "bf16";
  return c;
}

Seconds layer(const config::Config& c, std::int64_t world = 1) {
  const Gpu gpu = gpu_named("h100");
  const Layout layout = Layout::of(c, world);
  return Compute(c, gpu, layout).layer(0);
}

}  // namespace

TEST_CASE("plan: a product fills its last round of tiles or waits for it, and passes through memory", "[plan]") {
  Gpu gpu = gpu_named("h100");
  gpu.units = 100;
  gpu.product_share = 0.5;
  const double peak = 1e15;
  // 10 x 10 tiles of 128: one round of the hundred multiprocessors.
  const double whole = product_seconds(gpu, peak, 1280, 1280, 8192, 2);
  CHECK(whole == Approx(2 * 1280.0 * 1280 * 8192 / 0.5e15));
  // One row more is a second round, nearly idle.
  CHECK(product_seconds(gpu, peak, 1281, 1280, 8192, 2) == Approx(2 * whole));
  // A vector times a matrix is as slow as reading the matrix.
  CHECK(product_seconds(gpu, peak, 1, 8192, 8192, 2) >= 8192.0 * 8192 * 2 / gpu.memory_bandwidth);
  CHECK(product_seconds(gpu, peak, 0, 8192, 8192, 2) == 0);
}

TEST_CASE("plan: a large layer takes its FLOPs at the share of the peak that products reach, and a little more", "[plan]") {
  const config::Config c = job();
  const Gpu gpu = gpu_named("h100");
  const double least = config::layer_flops(c.model, 0, c.train.seq_len) * 4096 / (gpu.product_share * gpu.bf16);
  CHECK(layer(c).total() > 0.95 * least);  // causal attention skips half of what the formula counts
  CHECK(layer(c).total() < 1.25 * least);
  CHECK(layer(c).again == 0);
}

TEST_CASE("plan: recomputation does again what it does not keep", "[plan]") {
  config::Config c = job();
  c.train.activation_checkpointing = "full";
  CHECK(layer(c).again == Approx(layer(c).forward));
  c.train.activation_checkpointing = "selective";
  CHECK(layer(c).again < 0.1 * layer(c).forward);
  CHECK(layer(c).again > 0);
  c.train.remat_save = {"mlp"};
  const double attention = layer(c).again;
  c.train.remat_save = {"attention"};
  CHECK(layer(c).again > attention);  // four times as many numbers
  c.train.activation_checkpointing = "none";
  CHECK(layer(c).again == 0);
}

TEST_CASE("plan: tensor and context parallelism divide a layer's work", "[plan]") {
  config::Config c = job();
  const double one = layer(c).total();
  c.distributed.tp = 8;
  CHECK(layer(c, 8).total() == Approx(one / 8).epsilon(0.1));
  c.distributed.tp = 1;
  c.distributed.cp = 8;
  CHECK(layer(c, 8).total() == Approx(one / 8).epsilon(0.1));
}

TEST_CASE("plan: tensor parallelism divides the inside of experts, whose tokens are the same on all its ranks", "[plan]") {
  config::Config c = job();
  const double dense = layer(c).total();
  c.model.num_experts = 8;
  c.model.moe_top_k = 2;
  c.model.moe_frequency = 1;
  c.model.moe_ffn_dim = 16384;  // as many numbers a token as the dense layer
  CHECK(layer(c).total() == Approx(dense).epsilon(0.1));
  c.distributed.tp = 8;
  CHECK(layer(c, 8).total() == Approx(dense / 8).epsilon(0.25));
  // Experts of 128 numbers fill a tile; an eighth of them takes as long.
  c.model.moe_ffn_dim = 128;
  c.model.moe_top_k = 8;
  const double divided = layer(c, 8).total();
  c.distributed.tp = 1;
  CHECK(divided > 0.16 * layer(c).total());
}

TEST_CASE("plan: a query sees half of its chunk on average, and a window's whole length behind its start", "[plan]") {
  config::Config c = job();
  const Gpu gpu = gpu_named("h100");
  const Layout layout = Layout::of(c, 1);
  const auto forward = [&](const char* kind) {
    c.model.layer_pattern = {kind};
    return Compute(c, gpu, layout).attention_forward(0);
  };
  c.model.window = c.model.chunk = 512;
  const double whole = forward("global");
  CHECK(forward("chunk") == Approx(whole / 8));                  // 256 of 2,048
  CHECK(forward("local") == Approx(whole * (512 - 32) / 2048));  // 512 * 512 / 8192 fewer
  c.model.chunk = 4096;
  CHECK(forward("chunk") == Approx(whole));
}

TEST_CASE("plan: the type of the products says which peak counts", "[plan]") {
  config::Config c = job();
  const Gpu gpu = gpu_named("h100");
  CHECK(peak_of(gpu, c.train) == gpu.bf16);
  c.train.mixed_precision = "fp8";
  CHECK(peak_of(gpu, c.train) == gpu.fp8);
  c.train.mixed_precision = "fp32";
  CHECK(peak_of(gpu, c.train) == gpu.fp32);
  c.train.matmul_precision = "high";
  CHECK(peak_of(gpu, c.train) == gpu.tf32);
}

}  // namespace kf::plan::test
