// The memory of a profile against torch's allocator, and its trace against what was done.

#include <catch2/catch.hpp>

#include <algorithm>
#include <memory>

#include "builtins/builtins.h"
#include "config/tree/json.h"
#include "core/trace.h"
#include "support/temp_dir.h"
#include "support/tensor_memory.h"
#include "support/tiny.h"
#include "support/wide_config.h"
#include "train/loop/memory_estimate.h"
#include "train/profile/memory_watch.h"
#include "train/profile/op_ranges.h"
#include "train/profile/trace_file.h"

namespace kf::test {
namespace {

struct Seen {
  StepMemory memory;
  double grew = 0;                  // what the allocator says that the same step took beside what was there before
  double estimate = 0;              // train/loop/memory_estimate
  std::vector<std::string> places;  // "phase label" of all that happened
  std::int64_t weights = 0;         // numbers
};

/// The third of three equal updates is profiled, the second one measured by the allocator alone; state of the optimizer is made in the
/// first.
Seen seen_of(const config::Config& config) {
  Bench bench(config, config.train.mixed_precision == "bf16" ? at::kBFloat16 : at::kFloat);
  const at::Tensor tokens = random_tokens(config.train.batch_size, config.train.seq_len, 3, config.model.vocab_size);
  FixedLoader data({make_batch(tokens, tokens.roll(-1, 1))});
  bench.step(data, 0, 1e-3);
  Seen out;
  {
    const auto watch = std::make_shared<TensorMemory>();
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, watch);
    bench.step(data, 1, 1e-3);
    out.grew = watch->most();
  }
  const TraceRecorder recorder(OpRanges::nodes_made);
  const auto watch = std::make_shared<MemoryWatch>(*bench.model, *bench.optimizer, at::kCPU);
  watch->begin_step();
  {
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, watch);
    const OpRanges ops;
    Stepper::Callbacks callbacks;
    callbacks.micro_end = [&] { watch->backward_ended(); };
    bench.stepper->run(data, 2, 1e-3, callbacks);
  }
  const ThreadEvents events = TraceRecorder::take().front();
  out.memory = watch->end_step(events.places);
  for (const TraceEvent& event : events.events) {
    const TracePlace& place = events.places.at(event.place);
    out.places.push_back(place.phase + " " + place.label);
  }
  out.estimate = training_memory(config, bench.model->parameters()).total();
  out.weights = count_parameters(bench.model->parameters());
  return out;
}

std::int64_t of(const MemoryByKind& kinds, MemoryKind kind) { return kinds[static_cast<std::size_t>(kind)]; }

void check_sums(const Seen& seen) {
  const StepMemory& memory = seen.memory;
  // The same step allocates the same: what it takes at most beside what was there is what the allocator says, to the byte.
  CHECK(static_cast<double>(sum_of(memory.peak) - sum_of(memory.start)) == seen.grew);
  std::int64_t layers = 0;
  for (const auto& [name, kinds] : memory.layers) {
    layers += sum_of(kinds);
  }
  CHECK(layers == sum_of(memory.peak));
  CHECK(sum_of(memory.end) == sum_of(memory.start));  // nothing stays of a step
  // The estimate is another way to the same number, with the bound of its own tests (tests/unit/train/memory_test.cpp).
  CHECK(seen.estimate > 0.75 * static_cast<double>(sum_of(memory.peak)));
  CHECK(seen.estimate < 1.25 * static_cast<double>(sum_of(memory.peak)));
}

bool has(const Seen& seen, const std::string& place) {
  return std::find(seen.places.begin(), seen.places.end(), place) != seen.places.end();
}

}  // namespace

TEST_CASE("profile: memory is told by kind and layer, and adds up to what the allocator says", "[profile]") {
  const Seen seen = seen_of(wide_config());
  check_sums(seen);
  const StepMemory& memory = seen.memory;
  CHECK(of(memory.start, MemoryKind::weights) == 4 * seen.weights);
  CHECK(of(memory.start, MemoryKind::optimizer) >= 8 * seen.weights);  // two moments, and what it counts
  CHECK(of(memory.start, MemoryKind::gradients) == 0);
  std::int64_t gradients = 0;
  for (const StepMemory::Moment& moment : memory.course) {
    gradients = std::max(gradients, of(moment.held, MemoryKind::gradients));
  }
  CHECK(gradients >= 4 * seen.weights * 199 / 200);  // the course tells differences above half a per cent of the peak
  for (const std::string layer : {"layers.0", "layers.1", "layers.2", "layers.3"}) {
    CAPTURE(layer);
    REQUIRE(memory.layers.count(layer) == 1);
    CHECK(of(memory.layers.at(layer), MemoryKind::weights) == of(memory.layers.at("layers.0"), MemoryKind::weights));
    CHECK(of(memory.layers.at(layer), MemoryKind::weights) > 0);
  }
  CHECK(of(memory.layers.at("layers.1"), MemoryKind::activations) > 0);
}

TEST_CASE("profile: the same with bf16, and with layers that are done again in backward", "[profile]") {
  config::Config config = wide_config();
  SECTION("bf16") { config.train.mixed_precision = "bf16"; }
  SECTION("full recomputation") {
    config.train.activation_checkpointing = "full";
    config.train.batch_size = 16;
  }
  const Seen seen = seen_of(config);
  check_sums(seen);
  CHECK(has(seen, "backward layers.2.mlp"));
  CHECK(has(seen, "recompute layers.2.mlp") == (config.train.activation_checkpointing == "full"));
}

TEST_CASE("profile: forward and backward know their layers", "[profile]") {
  const Seen seen = seen_of(wide_config());
  for (const std::string phase : {"forward", "backward"}) {
    for (const std::string label :
         {"token_embedding", "layers.0.attention", "layers.0.mlp", "layers.3.attention", "layers.3.mlp", "norm", "loss"}) {
      CAPTURE(phase, label);
      CHECK(has(seen, phase + " " + label));
    }
  }
  CHECK(has(seen, "optimizer "));
  CHECK(has(seen, "data "));
}

TEST_CASE("profile: a trace is JSON whatever the names are, and loads where it was cut off behind any flush", "[profile]") {
  const TempDir dir;
  TraceFile file(dir / "below/trace.json", 3);
  const auto text = [&] { return read_file(dir / "below/trace.json"); };
  file.name_process("rank 3");
  file.range(7, "a \"b\"\n\\ {}", "call", 1500, 2001);
  file.range(7, std::string("\xff", 1), "call", 0, 1);
  file.flush();
  CHECK(std::get<config::Array>(config::parse_json(text() + "]", "cut off").value).size() == 4);
  file.counter("memory", 3'000'000'000'123, {{"weights", 5}, {"all", 6}});
  file.close();
  const config::Node tree = config::parse_json(text(), "whole");
  const auto& objects = std::get<config::Array>(tree.value);
  REQUIRE(objects.size() == 5);
  const auto field = [&](std::size_t i, const char* key) { return *config::find_node(*objects.at(i).table(), key); };
  CHECK(std::get<std::string>(field(2, "name").value) == "a \"b\"\n\\ {}");
  CHECK(std::get<double>(field(2, "ts").value) == 1.5);
  CHECK(std::get<double>(field(2, "dur").value) == 0.501);
  CHECK(std::get<std::int64_t>(field(2, "pid").value) == 3);
  CHECK(std::get<double>(field(4, "ts").value) == 3e9 + 0.123);
  CHECK(std::get<std::int64_t>(field(4, "args.all").value) == 6);
}

TEST_CASE("profile: the layer of a name", "[profile]") {
  CHECK(layer_named_in("layers.3.attention.q_proj.weight") == "layers.3");
  CHECK(layer_named_in("layers.12") == "layers.12");
  CHECK(layer_named_in("token_embedding.embedding.weight") == "token_embedding");
  CHECK(layer_named_in("layers.3.mlp > recipe.lua:7: mlp 'x', forward > linear") == "layers.3");
  CHECK(layer_named_in("loss").append(layer_named_in("")) == "loss");
}

}  // namespace kf::test
