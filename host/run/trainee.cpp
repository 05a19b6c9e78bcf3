#include "run/trainee.h"

#include <ATen/Context.h>

#include <algorithm>
#include <map>

#include "checkpoint/file_check.h"
#include "checkpoint/peft.h"
#include "checkpoint/reader.h"
#include "config/plan/batch_plan.h"
#include "config/show/emit.h"
#include "config/tree/json.h"
#include "core/error.h"
#include "core/log.h"
#include "layout/gathered_optimizer.h"
#include "layout/parallelize.h"
#include "model/first_values.h"
#include "model/layer/vocabulary.h"
#include "model/transformer/build.h"
#include "run/load_settings.h"
#include "run/memory_check.h"
#include "run/phases.h"
#include "run/precision_note.h"
#include "run/run_checks.h"
#include "run/run_parts.h"
#include "run/run_products.h"
#include "run/run_record.h"
#include "train/loop/steering.h"
#include "train/step/language.h"

namespace kf {
namespace {

/// What scripts say of how their weights are to be split, once: with one rank along tp nothing is.
void say_sharding_hints(Model& model, const World& world) {
  if (world.along(Axis::tp).size() > 1) {
    return;  // build_model has said what became of them
  }
  std::map<std::string_view, std::int64_t> counts;
  for (const ParameterPtr& parameter : model.parameters()) {
    if (parameter->split_hint) {
      ++counts[kSplitNames[static_cast<std::size_t>(parameter->split)]];
    }
  }
  std::vector<std::string> words;
  for (const auto& [name, count] : counts) {
    words.push_back(format("{} {}", count, name));
  }
  if (!words.empty()) {
    log::info("sharding hints of weights: {}; they have no effect where distributed.tp = 1", join(words, ", "));
  }
}

/// {"dp_shard": 2, ...}: all axes.
config::Node mesh_node(const Mesh& mesh) {
  config::Table out;
  for (const Axis axis : kAxes) {
    out[std::string(name_of(axis))] = config::Node(mesh.degree(axis));
  }
  return config::Node(std::move(out));
}

/// "high" is TF32, "medium" bf16, where the device has them; global to the process, so every run sets it.
void set_matmul_precision(const config::TrainConfig& train) { at::globalContext().setFloat32MatmulPrecision(train.matmul_precision); }

/// Which weights are drawn: all of a new run; where a file follows, what may be asked of them beside it.
DrawsWeight draws_of(const config::Config& config, const Start& start) {
  const LoadFrom from = loads_from(config, start);
  if (from == LoadFrom::nowhere) {
    return {};
  }
  return [rows = from == LoadFrom::init_from ? vocab_rows(config) : VocabRows(),
          rules = load_rules(config.checkpoint, from)](const Parameter& p) { return needs_first_values(p, rows, rules); };
}

/// What a file may lack has its first values behind this.
void fill_gaps(const LoadRules& rules, const config::Config& config, Model& model) {
  if (rules.leave_gaps()) {
    draw_unfilled(model.parameters(), static_cast<std::uint64_t>(config.train.seed));
  }
}

void make_storage(const RunContext& run, const Start& start, Model& model) {
  const config::TrainConfig& train = run.config.train;
  set_matmul_precision(train);
  materialize(model, run.device(), compute_type(train), static_cast<std::uint64_t>(train.seed),
              train.param_dtype == "bf16" ? at::kBFloat16 : at::kFloat, draws_of(run.config, start));
  sum_gradients_in(train.grad_dtype == "bf16" ? at::kBFloat16 : at::kFloat, model.parameters());
}

void take_initial_weights(const RunContext& run, Model& model) {
  const config::CheckpointConfig& checkpoint = run.config.checkpoint;
  const std::string& kind = checkpoint.init_weights;
  WeightPlaces places;
  places.rows = vocab_rows(run.config);
  places.rules = load_rules(checkpoint, LoadFrom::init_from);
  places.check = shared_check(run.world.files());
  load_weights(*checkpoint.init_from, model, places, weight_kind_named(kind, "checkpoint.init_weights"));
  fill_gaps(places.rules, run.config, model);
  log::info("weights from {}{}", *checkpoint.init_from, kind == "saved" ? "" : " (" + kind + ")");
}

/// checkpoint.exclude_from_loading = ["data"]: the micro-batch after this step is the first one of the data.
void begin_data_anew(CheckpointState& state, const RunContext& run) {
  config::Node* const course = state.values.find(kCourse);
  KF_CHECK(course != nullptr && course->table() != nullptr, Code::checkpoint,
           "{} does not say how far its data were read, so checkpoint.exclude_from_loading cannot leave \"data\" out",
           run.config.checkpoint.load_path.value_or(""));
  config::Table table = *course->table();
  table["skipped_micro_batches"] = config::Node(-config::BatchPlan(run.config.train, run.plan.data_ranks).first_micro(state.run.step));
  table["readers"] = config::Node(run.world.share().world);
  table["data"] = config::Node(config::Array{});
  *course = config::Node(std::move(table));
  log::info("the data begin anew (checkpoint.exclude_from_loading)");
}

/// The checkpoint into the trainee, as far as the settings say.
CheckpointState resumed_state(const RunContext& run, const Start& start, Trainee& trainee) {
  const config::Config& config = run.config;
  const LoadFrom from = loads_from(config, start);
  const LeftParts left = left_parts(config.checkpoint, start, from);
  // Its own checkpoint the leader has read whole to find it.
  const CheckpointReader reader(start.resume.checkpoint,
                                from == LoadFrom::own ? FileCheck(checked_before) : shared_check(run.world.files()));
  CheckpointState state = reader.state();
  WeightPlaces places;
  places.frozen_from = start.frozen_from;
  places.rules = load_rules(config.checkpoint, from);
  places.check = shared_check(run.world.files());
  reader.load(*trainee.model, *trainee.optimizer, places, left.state);
  fill_gaps(places.rules, config, *trainee.model);
  trainee.hooks.load(values_under(state.values, kHooks));
  if (left.data) {
    begin_data_anew(state, run);
  }
  log::info("resumed from {}: step {}, {} tokens", start.resume.checkpoint, state.run.step, grouped(state.run.tokens));
  return state;
}

/// The leader measures, the others take its choice: all compute alike.
config::Node kernels_of_all(const RunContext& run, Model& model, const config::Node& kept) {
  const config::TrainConfig& train = run.config.train;
  if (run.world.size() == 1) {
    return choose_run_products(model, train, compute_type(train), kept);
  }
  const config::Node chosen = run.world.leads() ? choose_run_products(model, train, compute_type(train), kept) : config::Node();
  const std::string told = run.world.all().tell(config::to_json(chosen, config::JsonStyle::plain, 0)).front();
  return run.world.leads() ? chosen
                           : choose_run_products(model, train, compute_type(train), config::parse_json(told, "the leader's kernels"));
}

/// Of all workers, those of this machine, which are neighbours.
plan::RankRange ranks_here(const RunContext& run) {
  if (const std::optional<WorkerPlace>& worker = run.request.launch.worker()) {
    return {0, worker->here ? run.plan.world : run.world.size()};
  }
  const LaunchedRank& own = run.request.launch.launched();
  const std::int64_t world = run.world.size(), count = std::min(own.local_world, world);
  return {std::clamp<std::int64_t>(own.rank - own.local_rank, 0, world - count), count};
}

/// The working folder, as JSON can have it.
std::string folder_text() {
  std::error_code ignored;
  const std::string folder = fs::current_path(ignored).string();
  return is_utf8(folder) ? folder : "";
}

}  // namespace

PlannedModel plan_model(const RunContext& run) {
  config::Config config = run.config;
  config.run.device = run.device().is_cpu() ? "cpu" : "cuda";  // "auto" says less about memory
  PlannedModel out;
  out.model = build_model(run.config, run.registries, {&run.trainers, nullptr});
  const ParameterList parameters = out.model->parameters();
  const std::int64_t ranks = run.plan.world;
  const bool together = run.device().is_cpu();  // the ranks of this machine share its memory; a GPU is one rank's
  const plan::RankRange here = together ? ranks_here(run) : plan::RankRange{run.world.rank(), 1};
  out.memory = together ? machine_memory(config, parameters, ranks, here) : training_memory(config, parameters, ranks);
  if (config.checkpoint.async_mode != "disabled" && run.device().is_cpu()) {  // of a GPU it lies in the host's memory
    const double copy =
        out.memory.of("weights") + out.memory.of("optimizer (" + config.optimizer.name + ")") + out.memory.of("outer weights (diloco)");
    out.memory.parts.emplace_back("a copy for saves", copy);
  }
  out.room = room_on(run.device());
  const bool tight = out.memory.total() > out.room.bytes;
  check_memory(config.run, here.count > 1 ? format("the job on {} ranks of this machine", here.count) : "the job", out.memory, out.room,
               tight ? memory_savers(config, parameters, ranks, here) : Savers{});
  return out;
}

Trainee make_trainee(const RunContext& run, const RunData& data, const Start& start) {
  const config::Config& config = run.config;
  Trainee out;
  static_cast<PlannedModel&>(out) = plan_model(run);
  const bool alone = run.world.size() == 1;
  if (alone) {
    make_storage(run, start, *out.model);  // an optimizer in Lua may look at the weights while it is made
  }
  out.optimizer = make_optimizer(config, run.registries, *out.model);
  if (!alone) {
    parallelize(*out.model, *out.optimizer, run.trainers, unit_options(config.distributed));
    out.optimizer = gathered_where_needed(std::move(out.optimizer), *out.model, run.trainers);
    make_storage(run, start, *out.model);
  }
  if (config.averaging.type != "none") {
    auto averaged = std::make_unique<Averaged>(std::move(out.optimizer), out.model->parameters(), config.averaging);
    out.average = averaged.get();
    out.optimizer = std::move(averaged);
  }
  if (config.diloco.interval > 0) {
    auto outer =
        std::make_unique<Diloco>(std::move(out.optimizer), out.model->parameters(), config.diloco, run.world.along(Axis::dp_replicate));
    out.outer = outer.get();
    out.optimizer = std::move(outer);
  }
  out.loss = make_loss(config, run.registries);
  out.objective =
      std::make_unique<Language>(*out.loss, LanguageOptions{config.train.z_loss_weight, config.model.mtp_layers,
                                                            config.train.mtp_loss_weight, vocabulary_ranks(*out.model, run.world)});
  out.schedule = make_schedule(config, run.registries, {run.plan.max_steps, run.plan.data_ranks});
  out.sampler = sampler_of(config, run.registries);
  check_plan(config, run.registries, *out.model);
  say_sharding_hints(*out.model, run.world);
  out.phases = make_phases(config, run.registries, run.plan.max_steps);
  check_phases(out.phases, *out.model, *data.train);
  out.hooks = make_hooks(config, run.registries, run.request.hook);
  if (!start.resumes() && config.checkpoint.init_from) {
    take_initial_weights(run, *out.model);
  }
  if (!start.resumes() && !config.adapter.path.empty()) {
    read_peft(config.adapter, config.checkpoint.init_from.value_or(""), *out.model);
  }
  return out;
}

CheckpointState starting_state(const RunContext& run, const RunData& data, const Start& start, Trainee& trainee) {
  const config::Config& config = run.config;
  CheckpointState state;
  if (start.resumes()) {
    state = resumed_state(run, start, trainee);
  }
  require_values(trainee.model->parameters());
  state.data_fingerprint = data.record;
  state.job = config::Node(job_values(config));
  state.folder = folder_text();
  state.code = code_digests(start.compared);
  state.versions = program_versions();
  state.mesh = mesh_node(run.world.mesh());
  state.max_steps = run.plan.max_steps;
  state.job_toml = config::to_toml(config);
  state.kernels = kernels_of_all(run, *trainee.model, start.resumes() ? state.kernels : run.request.products);
  if (const std::string note = precision_note(config, compute_type(config.train), run.device()); !note.empty()) {
    log::info("{}", note);
  }
  return state;
}

}  // namespace kf
