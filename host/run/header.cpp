#include "run/header.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "build_info.h"
#include "config/plan/derived.h"
#include "core/decimal.h"
#include "core/log.h"
#include "core/log_keep.h"
#include "core/wrap.h"
#include "metrics/console.h"
#include "run/run_threads.h"

namespace kf {
namespace {

std::string short_real(double value) { return general(value, 6); }

/// "cpu, 2 threads", or "cuda:0, NVIDIA H200, 140 GiB".
std::string device_text(const ComputeDevice& d) {
  if (d.device.is_cuda()) {
    return format("{}, {}, {} GiB", d.device.str(), d.name, d.bytes >> 30);
  }
  return "cpu, " + threads_text();
}

std::string machine_line(const HeaderFacts& f) {
  return format("kf-host {}  torch {}  {}, {} TFLOP/s ({})", build::kVersion, build::kTorch, device_text(f.device),
                fixed(f.peak.flops / 1e12, 2), f.peak.source);
}

std::string model_line(const HeaderFacts& f) {
  const config::ModelConfig& m = f.config.model;
  return format("{}, {} parameters: {} layers, dim {}, heads {}/{}, {} {}, vocab {}", m.model_type,
                grouped(count_parameters(f.model.parameters())), m.n_layers, m.dim, m.n_heads, config::kv_heads(m),
                config::mlp_name(m.activation), config::ffn_hidden_dim(m), m.vocab_size);
}

std::string plan_line(const HeaderFacts& f) {
  const config::TrainConfig& t = f.config.train;
  const std::string precision = t.mixed_precision == "fp32" ? "fp32" : t.mixed_precision + " with fp32 masters";
  const std::string tokens = grouped(f.plan.tokens_per_step) + (t.batch_schedule.empty() ? "" : " (at first)");
  return format("{} steps x {} tokens, {} lr {} {}, {}", grouped(f.plan.max_steps), tokens, f.config.optimizer.name,
                short_real(f.config.optimizer.lr), f.config.scheduler.name, precision);
}

/// What the products with weights alone take, which is less than a run does; "" where that is nothing to wait for, or not known.
std::string time_line(const HeaderFacts& f) {
  constexpr double kWorthALine = 60;  // seconds
  const double flops = config::flops_per_token(f.config.model, /*seq_len=*/0) * static_cast<double>(f.plan.tokens_per_step) *
                       static_cast<double>(f.plan.max_steps);
  const double seconds = f.peak.flops > 0 ? flops / (f.peak.flops * static_cast<double>(f.plan.world)) : 0;
  const ParameterList weights = f.model.parameters();
  const bool frozen = std::any_of(weights.begin(), weights.end(), [](const ParameterPtr& weight) { return weight->is_frozen(); });
  if (seconds < kWorthALine || frozen || !f.config.train.batch_schedule.empty()) {
    return "";
  }
  return format("at least {} for all steps, by their {} PFLOP at the peak; `eta` in the rows tells what is left", human_seconds(seconds),
                general(flops / 1e15, 3));
}

}  // namespace

void print_header(const HeaderFacts& f) {
  const std::string file = f.request.file.string();
  const std::string overrides =
      f.request.overrides == 0 ? "" : format(", {} {}", f.request.overrides, f.request.overrides == 1 ? "override" : "overrides");
  // On a terminal what is too long goes on below its words; the log keeps whole lines.
  const std::size_t terminal = terminal_columns(STDOUT_FILENO);
  const std::size_t columns = terminal > 0 ? terminal : std::string::npos;
  std::vector<std::string> lines{machine_line(f),
                                 header_line("job", file + overrides, f.plan.dir.string()),
                                 header_line("model", model_line(f)),
                                 header_line("data", f.data),
                                 header_line("plan", plan_line(f)),
                                 header_line("memory", f.memory)};
  if (const std::string time = time_line(f); !time.empty()) {
    lines.push_back(header_line("time", time));
  }
  for (const std::string& line : lines) {
    std::cout << wrapped(line, columns, 8) << '\n';
    log::keep(line);
  }
  std::cout << std::flush;
}

}  // namespace kf
