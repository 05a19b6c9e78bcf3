#include "app/command/plan_report.h"

#include <algorithm>
#include <iomanip>

#include "config/plan/batch_plan.h"
#include "config/plan/derived.h"
#include "config/plan/pipeline.h"
#include "config/rules/unbuilt.h"
#include "config/tree/make.h"
#include "core/error.h"
#include "core/text.h"
#include "core/text_table.h"

namespace kf {
namespace {

using config::Node;
using config::Table;

constexpr std::int64_t kPictureMicros = 64;  // a picture of more would not fit a screen

double real(std::int64_t n) { return static_cast<double>(n); }

/// 8030261248 as "8.03 B".
std::string human_count(double number) {
  for (const auto& [unit, name] : {std::pair(1e12, " T"), std::pair(1e9, " B"), std::pair(1e6, " M"), std::pair(1e3, " k")}) {
    if (number >= unit) {
      return fixed(number / unit, number >= 100 * unit ? 0 : number >= 10 * unit ? 1 : 2) + name;
    }
  }
  return fixed(number, 0);
}

/// 0.0123 as "12.3 ms".
std::string human_time(double seconds) {
  return seconds >= 1 ? fixed(seconds, 2) + " s" : seconds >= 1e-3 ? fixed(seconds * 1e3, 1) + " ms" : fixed(seconds * 1e6, 0) + " us";
}

std::string percent(double share) { return fixed(100 * share, 1) + " %"; }

std::string layout_words(const PerAxis& degrees) {
  std::vector<std::string> words;
  for (const Axis axis : kAxes) {
    if (degrees[axis] > 1) {
      words.push_back(format("{} {}", name_of(axis), degrees[axis]));
    }
  }
  return words.empty() ? "one rank" : join(words, ", ");
}

std::int64_t micros_of(const PlanReport& r) { return config::BatchPlan(r.loaded.config.train, r.layout.mesh.readers()).micros(0); }

/// The layer whose products reach least of the peak, and why.
std::string small_products(const PlanReport& r) {
  const config::ModelConfig& m = r.loaded.config.model;
  const double tp = real(r.layout.mesh.degree(Axis::tp));
  const double tokens = real(r.loaded.config.train.batch_size * r.loaded.config.train.seq_len) / real(r.layout.mesh.degree(Axis::cp));
  const double heads = real(m.n_heads * config::head_dim(m)) / tp, hidden = real(config::ffn_hidden_dim(m)) / tp;
  const double narrow = std::min(heads, hidden);
  constexpr double kSmall = 1024;
  if (tokens < kSmall || narrow < kSmall) {
    return format(
        "a rank multiplies small matrices ({} tokens a micro-batch, {} of its heads' or hidden numbers): products of less than "
        "{} on a side do not fill a {}; {}",
        fixed(tokens, 0), fixed(narrow, 0), fixed(kSmall, 0), r.gpu.name,
        narrow < kSmall && tp > 1 ? "less tp helps" : "a larger train.batch_size helps");
  }
  return "";
}

void warn_of_links(PlanReport& r) {
  const Mesh& mesh = r.layout.mesh;
  const std::int64_t tp = mesh.degree(Axis::tp), ep = mesh.degree(Axis::ep) * tp;
  if (tp > r.gpu.node || (tp > 1 && r.gpu.node % tp != 0)) {
    r.warnings.push_back(
        format("distributed.tp = {} goes across machines of {}: every layer then waits for the network four times", tp, r.gpu.node));
  }
  if (mesh.degree(Axis::ep) > 1 && ep > r.gpu.node) {
    r.warnings.push_back(format("distributed.ep = {} goes across machines of {}: tokens reach their experts over the network",
                                mesh.degree(Axis::ep), r.gpu.node));
  }
}

void find_warnings(PlanReport& r) {
  const double need = r.memory[static_cast<std::size_t>(r.fullest)].total(), room = plan::kUsableMemory * r.gpu.memory;
  if (need > room) {
    r.warnings.push_back(
        format("does not fit: the fullest rank needs {}, and of {} {} of a {} are for tensors (kf-host plan --search looks "
               "for a layout that fits)",
               human_bytes(need), human_bytes(r.gpu.memory), human_bytes(room), r.gpu.name));
  }
  warn_of_links(r);
  if (const std::string small = small_products(r); !small.empty()) {
    r.warnings.push_back(small);
  }
  const plan::StepTime& t = r.step.time;
  if (t.sharing > 0.2 * t.total) {
    r.warnings.push_back(
        format("{} of a step is for gradients and weights that nothing hides: more sequences an update, or fewer ranks "
               "along dp",
               percent(t.sharing / t.total)));
  }
  const std::int64_t nodes = (r.world + r.gpu.node - 1) / r.gpu.node;
  if (r.world > r.gpu.node && r.world % r.gpu.node != 0) {
    r.warnings.push_back(format("{} ranks do not fill {} machines of {}", r.world, nodes, r.gpu.node));
  }
  for (const std::string& warning : r.loaded.report.warnings) {
    r.warnings.push_back(warning);
  }
  for (const std::string& line : config::keys_refused(r.loaded.config)) {
    r.warnings.push_back("cannot run yet: " + line);
  }
  if (!r.weights.known) {
    r.warnings.emplace_back("the optimizer or an adapter is written in Lua: what it holds is not in these numbers");
  }
}

void print_memory(std::ostream& out, const PlanReport& r) {
  const plan::MemoryEstimate& most = r.memory[static_cast<std::size_t>(r.fullest)];
  const std::string stage = r.memory.size() > 1 ? format(", stage {} of {}", r.fullest + 1, r.memory.size()) : "";
  out << format("memory      {} of {} on the fullest rank{}, in {}\n", human_bytes(most.total()), human_bytes(r.gpu.memory), stage,
                most.moment);
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, bytes] : most.parts) {
    rows.push_back({"  " + name, human_bytes(bytes)});
  }
  out << text_table(rows, {1});
}

void print_traffic(std::ostream& out, const PlanReport& r) {
  if (r.flows.empty()) {
    return;
  }
  double sent = 0;
  std::vector<std::vector<std::string>> rows{{"  along", "what", "ranks", "over", "calls", "a call", "a step", "time"}};
  for (const plan::Flow& flow : r.flows) {
    sent += flow.sent();
    rows.push_back({"  " + flow.axis, flow.what, std::to_string(flow.reach.ranks), flow.reach.link(),
                    flow.calls >= 1 ? fixed(flow.calls, 0) : fixed(flow.calls, 3), human_bytes(flow.sent() / flow.calls),
                    human_bytes(flow.sent()), human_time(flow.seconds(r.gpu))});
  }
  out << format("traffic     {} leave a rank of the first stage in a step\n", human_bytes(sent)) << text_table(rows, {2, 4, 5, 6, 7});
}

void print_pipeline(std::ostream& out, const PlanReport& r) {
  const std::int64_t ranks = r.layout.mesh.degree(Axis::pp), micros = micros_of(r);
  if (ranks == 1) {
    return;
  }
  const config::DistributedConfig& d = r.loaded.config.distributed;
  out << format("pipeline    {}, {} micro-batches; its ranks wait for each other {} of its time\n", d.pp_schedule, micros,
                percent(r.step.bubble_share));
  if (micros <= kPictureMicros && ranks <= kPictureMicros) {
    out << config::picture(config::plan_pipeline(d.pp_schedule, ranks, static_cast<std::int64_t>(r.layout.stages[0].size()), micros));
  }
}

void print_time(std::ostream& out, const PlanReport& r) {
  const plan::StepTime& t = r.step.time;
  std::vector<std::vector<std::string>> rows;
  const auto row = [&](const char* name, double seconds) {
    if (seconds > 0.0005 * t.total) {
      rows.push_back({std::string("  ") + name, human_time(seconds), percent(seconds / t.total)});
    }
  };
  row("computing", t.computing - t.again);
  row("computing again", t.again);
  row("messages of micro-batches", t.waiting);
  row("waiting for other stages", t.bubble);
  row("gradients and weights", t.sharing);
  row("the update", t.updating);
  out << format("step        {}, {} tokens/s, MFU {}\n", human_time(t.total), grouped(static_cast<std::int64_t>(r.step.tokens_per_second)),
                percent(r.step.mfu))
      << text_table(rows, {1, 2});
}

double trained(const plan::Weights& weights) {
  double out = 0;
  for (const plan::Weight& weight : weights.all) {
    out += weight.trains && !weight.buffer ? weight.numbers() : 0;
  }
  return out;
}

Node time_node(const plan::StepPlan& step) {
  const plan::StepTime& t = step.time;
  return config::make_table({{"seconds", Node(t.total)},
                             {"computing", Node(t.computing)},
                             {"recomputing", Node(t.again)},
                             {"messages", Node(t.waiting)},
                             {"bubble", Node(t.bubble)},
                             {"sharing", Node(t.sharing)},
                             {"update", Node(t.updating)},
                             {"tokens", Node(step.tokens)},
                             {"tokens_per_second", Node(step.tokens_per_second)},
                             {"mfu", Node(step.mfu)},
                             {"bubble_share", Node(step.bubble_share)}});
}

Node degrees_node(const PerAxis& degrees) {
  Table out;
  for (const Axis axis : kAxes) {
    out[std::string(name_of(axis))] = Node(degrees[axis]);
  }
  return Node(std::move(out));
}

}  // namespace

PlanReport make_report(const config::Loaded& loaded, const plan::Weights& weights, const plan::Gpu& gpu, std::int64_t world) {
  PlanReport out{loaded, weights, gpu, world, plan::Layout::of(loaded.config, world), {}, 0, {}, {}, {}};
  for (std::int64_t stage = 0; stage < out.layout.mesh.degree(Axis::pp); ++stage) {
    out.memory.push_back(plan::rank_memory(loaded.config, weights, out.layout, stage));
    if (out.memory.back().total() > out.memory[static_cast<std::size_t>(out.fullest)].total()) {
      out.fullest = stage;
    }
  }
  out.flows = plan::step_flows(loaded.config, weights, out.layout, gpu.node, 0);
  out.step = plan::plan_step(loaded.config, weights, out.layout, gpu);
  find_warnings(out);
  return out;
}

void print(std::ostream& out, const PlanReport& r) {
  const std::int64_t nodes = (r.world + r.gpu.node - 1) / r.gpu.node;
  const config::TrainConfig& train = r.loaded.config.train;
  out << format("layout      {} {} on {} {} of {}: {}\n", r.world, r.gpu.name, nodes, nodes == 1 ? "machine" : "machines", r.gpu.node,
                layout_words(r.layout.mesh.degrees()));
  out << format("parameters  {}, of which {} train\n", human_count(real(config::parameter_count(r.loaded.config.model))),
                human_count(trained(r.weights)));
  out << format("update      {} tokens: {} micro-batches of {} x {} tokens on {} readers\n",
                grouped(static_cast<std::int64_t>(r.step.tokens)), micros_of(r), train.batch_size, train.seq_len, r.layout.mesh.readers());
  print_memory(out, r);
  print_traffic(out, r);
  print_pipeline(out, r);
  print_time(out, r);
  for (const std::string& warning : r.warnings) {
    out << "warning: " << warning << '\n';
  }
}

Node to_node(const PlanReport& r) {
  Table out;
  out["world"] = Node(r.world);
  out["gpu"] = Node(r.gpu.name);
  out["layout"] = degrees_node(r.layout.mesh.degrees());
  out["parameters"] = Node(config::parameter_count(r.loaded.config.model));
  out["trained"] = Node(static_cast<std::int64_t>(trained(r.weights)));
  out["micro_batches"] = Node(micros_of(r));
  config::Array stages;
  for (const plan::MemoryEstimate& estimate : r.memory) {
    Table parts;
    for (const auto& [name, bytes] : estimate.parts) {
      parts[name] = Node(bytes);
    }
    stages.push_back(config::make_table({{"bytes", Node(estimate.total())}, {"moment", Node(estimate.moment)}, {"parts", Node(parts)}}));
  }
  out["memory"] = config::make_table({{"available", Node(r.gpu.memory)},
                                      {"bytes", Node(r.memory[static_cast<std::size_t>(r.fullest)].total())},
                                      {"fullest_stage", Node(r.fullest)},
                                      {"stages", Node(std::move(stages))}});
  config::Array flows;
  for (const plan::Flow& flow : r.flows) {
    flows.push_back(config::make_table({{"along", Node(flow.axis)},
                                        {"what", Node(flow.what)},
                                        {"ranks", Node(flow.reach.ranks)},
                                        {"machines", Node(flow.reach.nodes)},
                                        {"over", Node(flow.reach.link())},
                                        {"calls", Node(flow.calls)},
                                        {"bytes", Node(flow.sent())},
                                        {"seconds", Node(flow.seconds(r.gpu))}}));
  }
  out["traffic"] = Node(std::move(flows));
  out["step"] = time_node(r.step);
  out["warnings"] = config::make_texts(r.warnings);
  return Node(std::move(out));
}

void print(std::ostream& out, const plan::Found& found, const plan::Gpu& gpu, std::int64_t sequences) {
  out << format("{} layouts with {} sequences an update, of which {} do not fit into {} of a {}\n", found.looked_at, sequences,
                found.too_large, human_bytes(plan::kUsableMemory * gpu.memory), gpu.name);
  if (found.best.empty()) {
    return;
  }
  std::vector<std::vector<std::string>> rows{{"step", "MFU", "tokens/s", "memory", "settings"}};
  for (const plan::Candidate& one : found.best) {
    rows.push_back({human_time(one.step.time.total), percent(one.step.mfu), grouped(static_cast<std::int64_t>(one.step.tokens_per_second)),
                    human_bytes(one.memory), one.settings()});
  }
  out << text_table(rows, {0, 1, 2, 3});
}

Node to_node(const plan::Found& found) {
  Table out;
  out["looked_at"] = Node(found.looked_at);
  out["too_large"] = Node(found.too_large);
  config::Array best;
  for (const plan::Candidate& one : found.best) {
    best.push_back(config::make_table({{"layout", degrees_node(one.degrees)},
                                       {"batch_size", Node(one.batch_size)},
                                       {"grad_accum_steps", Node(one.micros)},
                                       {"memory", Node(one.memory)},
                                       {"settings", Node(one.settings())},
                                       {"step", time_node(one.step)}}));
  }
  out["best"] = Node(std::move(best));
  return Node(std::move(out));
}

}  // namespace kf
