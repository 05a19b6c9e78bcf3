#include "app/script/inference.h"

#include <algorithm>
#include <set>
#include <utility>

#include "app/script/unused_settings.h"
#include "builtins/builtins.h"
#include "checkpoint/reader.h"
#include "config/huggingface/generation.h"
#include "config/huggingface/huggingface.h"
#include "config/load/layers.h"
#include "config/load/load.h"
#include "config/load/toml.h"
#include "core/error.h"
#include "core/log.h"
#include "core/plain_file.h"
#include "data/hub/model.h"
#include "data/loader/eval_sets.h"
#include "kernels/product/products_scope.h"
#include "model/transformer/build.h"
#include "registry/registries.h"
#include "run/answer_ends.h"
#include "run/job_tokenizer.h"
#include "run/memory_check.h"
#include "run/run_parts.h"
#include "run/run_products.h"
#include "train/eval/evaluate.h"

namespace kf {
namespace {

constexpr std::uint64_t kMostJob = std::uint64_t{64} << 20;
constexpr std::int64_t kLongestWindow = 2048;  // of evaluation, where nothing says how long the model trained with

/// Keeps of the table `section` of `job` the keys in `names`.
void keep_only(config::Table& job, const char* section, const std::vector<const char*>& names) {
  config::Node* const node = job.find(section);
  if (node == nullptr || node->table() == nullptr) {
    return;
  }
  config::Table kept;
  for (const char* name : names) {
    if (const config::Node* value = node->table()->find(name)) {
      kept[name] = *value;
    }
  }
  *node = config::Node(std::move(kept));
}

/// Only what tells how the model's ids read: its data need not exist any more.
void forget_data(config::Table& job) {
  for (const char* section : {"dataset", "transform", "eval"}) {
    job.erase(section);
  }
  config::Node* const data = job.find("data");
  if (data == nullptr || data->table() == nullptr) {
    return;
  }
  // What kinds of sources there were tells whether the model learned from text or from ids, and from chats.
  if (config::Node* sources = data->table()->find("datasets"); sources != nullptr && sources->array() != nullptr) {
    for (config::Node& source : *sources->array()) {
      if (source.table() != nullptr) {
        source.table()->erase("transforms");
      }
    }
  }
  for (const char* key : {"phases", "anneal_weights", "anneal_start_step", "holdout"}) {
    data->table()->erase(key);
  }
}

/// Text of `node` and of all items below that are strings.
void collect_texts(const config::Node* node, std::set<std::string>& out) {
  if (node == nullptr) {
    return;
  }
  if (const auto* const text = std::get_if<std::string>(&node->value)) {
    out.insert(*text);
  } else if (node->array() != nullptr) {
    for (const config::Node& item : *node->array()) {
      collect_texts(&item, out);
    }
  } else if (node->table() != nullptr) {
    collect_texts(node->table()->find("transforms"), out);  // of a source
  }
}

/// Transforms of training batches, with the options of those that nothing else uses.
void forget_batch_transforms(config::Table& job) {
  config::Node* const data = job.find("data");
  const config::Node* const eval = job.find("eval");
  config::Node* const options = job.find("transform");
  if (data == nullptr || data->table() == nullptr) {
    return;
  }
  std::set<std::string> gone;
  std::set<std::string> used;
  collect_texts(data->table()->find("batch_transforms"), gone);
  collect_texts(data->table()->find("datasets"), used);
  collect_texts(eval != nullptr && eval->table() != nullptr ? eval->table()->find("batch_transforms") : nullptr, used);
  for (const std::string& name : gone) {
    if (options != nullptr && options->table() != nullptr && used.count(name) == 0) {
      options->table()->erase(name);
    }
  }
  data->table()->erase("batch_transforms");
}

/// The settings of a checkpoint that say what the model is and how its text is read: how it was trained does not matter here, and parts
/// that a script registered for that (hooks, schedules, losses) need not exist.
config::Node inference_job(const fs::path& file, bool with_data) {
  config::Report report;
  std::optional<config::Table> job;
  if (path_exists(file)) {
    job = config::parse_toml(read_regular_file(file, kMostJob), file.string(), config::Origin::Kind::toml, report);
  }
  KF_CHECK(job && report.problems.empty(), Code::checkpoint, "{} cannot be read as a job: the checkpoint is damaged or of another program",
           file);
  for (const char* section : training_sections()) {
    job->erase(section);
  }
  keep_only(*job, "train", inference_train_keys());
  forget_batch_transforms(*job);
  if (config::Node* adapter = job->find("adapter"); adapter != nullptr && adapter->table() != nullptr) {
    adapter->table()->erase("path");  // where its values started
  }
  if (with_data) {
    if (config::Node* eval = job->find("eval"); eval != nullptr && eval->table() != nullptr) {
      eval->table()->erase("target_loss");
    }
  } else {
    forget_data(*job);
  }
  return config::Node(std::move(*job), {config::Origin::Kind::recipe, file.string(), 0, 0, {}});
}

/// Whether one of the files that `open_tokenizer` looks for is there.
bool holds_tokenizer(const fs::path& folder) {
  for (const char* name : {"tokenizer.json", "tekken.json", "tokenizer.model", "vocab.json"}) {
    if (path_exists(folder / name)) {
      return true;
    }
  }
  return !glob(folder, "*.tiktoken").empty();
}

/// What ends an answer of another program's model, as transformers has it: what its files name, else the tokenizer's own end.
void take_generation_file(LoadedModel& out) {
  const config::GenerationFile file = config::read_generation_file(out.path);
  out.ends = file.ends;
  std::vector<std::string> words;
  for (const auto& [key, value] : file.generate) {
    words.push_back(key + " " + brief(value));
  }
  out.generation = words.empty() ? "" : format("generation_config.json: {}", join(words, ", "));
  if (!file.ends.empty()) {
    std::vector<std::string> ids;
    for (const std::int64_t id : file.ends) {
      ids.push_back(to_text(id));
    }
    out.generation += format("{}answers end at {} ({})", words.empty() ? "" : "; ", join(ids, ", "), file.ends_from);
  } else if (out.tokenizer != nullptr && out.tokenizer->eos_id()) {
    out.ends = {*out.tokenizer->eos_id()};
  }
  if (!file.unfollowed.empty()) {
    log::warn("{}: generation_config.json has {}, which kf-host's generation does not follow", out.path, join(file.unfollowed, ", "));
  }
}

/// Whether the tokenizer's file itself begins a text with BOS.
bool puts_bos_in_front(const Tokenizer* tokenizer) {
  return tokenizer != nullptr && tokenizer->bos_id() &&
         begun_ids(*tokenizer, "", {true, false}) == std::vector<std::int64_t>{*tokenizer->bos_id()};
}

bool sets_key(const std::vector<std::string>& overrides, const std::string& key) {
  return std::any_of(overrides.begin(), overrides.end(), [&](const std::string& one) { return one.starts_with("--" + key + "="); });
}

/// A folder of another program: the model and what it comes with.
config::Node huggingface_job(const fs::path& folder, std::int64_t seq_len) {
  config::Table model;
  model["preset"] = config::Node(folder.string());
  config::Table train;
  train["seq_len"] = config::Node(seq_len);
  config::Table job;
  job["model"] = config::Node(std::move(model));
  job["train"] = config::Node(std::move(train));
  job["generate"] = config::Node(config::read_generation_file(folder).generate);
  if (holds_tokenizer(folder)) {
    config::Table data;
    data["tokenizer_path"] = config::Node(folder.string());
    job["data"] = config::Node(std::move(data));
  }
  return config::Node(std::move(job), {config::Origin::Kind::recipe, folder.string(), 0, 0, {}});
}

/// The copy, in its run's folder, of the file that `key` of a checkpoint's job names (tokenizer_path, chat_template): what the model was
/// trained with, whatever has become of the file. "" without one.
std::string copy_of(const std::string& key, const fs::path& checkpoint) {
  const std::optional<fs::path> run = run_folder_of(checkpoint);
  config::Node job = inference_job(checkpoint / "job.toml", /*with_data=*/true);
  const config::Node* const path = config::find_node(*job.table(), "data." + key);
  const auto* const given = path != nullptr ? std::get_if<std::string>(&path->value) : nullptr;
  if (!run || given == nullptr || given->empty()) {
    return {};
  }
  const fs::path copy = recorded_copy(*run, key);
  if (!copy.empty() && !path_exists(*given)) {
    log::info("data.{}: {} {}; the run's own copy is taken: {}", key, *given,
              hub_name(*given, true) ? "is a name of the hub" : "is not there any more", copy);
  }
  return copy.string();
}

config::Config load_settings(const InferenceRequest& request, const fs::path& folder, bool huggingface, const Registries& registries) {
  warn_unused_settings(request.overrides, SettingsUse::inference);
  config::Request out;
  out.overrides = request.overrides;
  out.files_must_exist = request.with_data;
  out.trains = false;
  for (const char* key : {"tokenizer_path", "chat_template"}) {
    const bool replaced = std::string_view(key) == "tokenizer_path" && !request.tokenizer.empty();
    if (const std::string copy = huggingface || replaced ? "" : copy_of(key, folder); !copy.empty()) {
      out.overrides.insert(out.overrides.begin(), format("--data.{}={}", key, copy));
    }
  }
  if (!request.tokenizer.empty()) {
    out.overrides.push_back("--data.tokenizer_path=" + (request.tokenizer == "bytes" ? "" : request.tokenizer));
  }
  if (!huggingface) {
    out.recipe = inference_job(folder / "job.toml", request.with_data);
    return config::load_or_fail(out, registries.catalog()).config;
  }
  config::Request probe;
  probe.recipe = huggingface_job(folder, 1);
  probe.files_must_exist = false;
  probe.trains = false;
  const config::Loaded probed = config::load(probe, registries.catalog());  // what it warns of, the second time says
  const std::int64_t positions = probed.report.problems.empty() ? probed.config.model.max_seq_len : 1;
  out.recipe = huggingface_job(folder, std::min(positions, kLongestWindow));
  return config::load_or_fail(out, registries.catalog()).config;
}

/// Whether a folder is another program's.
bool is_foreign(const fs::path& source) { return config::is_huggingface_folder(source) && !path_exists(source / "state.json"); }

/// The folder that a path or a name of the hub stands for.
fs::path folder_of(const fs::path& asked) {
  const fs::path source = hub::locate(asked.string(), hub::ModelFiles::weights);
  KF_CHECK(path_exists(source), Code::checkpoint, "{}", hub::not_located(asked.string()));
  return is_foreign(source) ? source : find_checkpoint(source);
}

}  // namespace

RecordedScript script_for(const std::string& given, const fs::path& source) {
  if (!given.empty()) {
    return {given, {}};
  }
  const std::optional<fs::path> run = path_exists(source) && !is_foreign(source) ? run_folder_of(source) : std::nullopt;
  RecordedScript script = run ? recorded_script(*run) : RecordedScript();
  if (script.path.empty()) {
    return {};
  }
  config::Request probe;
  probe.recipe = inference_job(folder_of(source) / "job.toml", /*with_data=*/true);
  probe.files_must_exist = false;
  probe.trains = false;
  if (config::load(probe, native_registries().catalog()).report.problems.empty()) {
    return {};
  }
  log::info("parts of {}, the run's own copy of its script", script.path);
  return script;
}

LoadedModel load_for_inference(const InferenceRequest& request, const Registries& registries) {
  LoadedModel out;
  out.path = folder_of(request.source);
  const bool huggingface = is_foreign(out.path);
  try {
    out.config = load_settings(request, out.path, huggingface, registries);
  } catch (Error& error) {
    throw huggingface || (request.script != nullptr && request.script->has_script())
        ? error
        : error.context(format("the job of {}; parts that a Lua script registers are known with --script FILE", out.path));
  }
  if (request.script != nullptr) {
    request.script->begin(out.config);
  }
  out.model = build_model(out.config, registries);
  check_loading(out.config, out.model->parameters(), request.device, out.path);
  materialize(*out.model, request.device, at::kFloat, 0, at::kFloat, [](const Parameter& p) { return needs_first_values(p); });
  WeightPlaces places;
  if (!huggingface && out.path != request.source) {
    places.check = checked_before;  // when it was looked for
  }
  load_weights(out.path, *out.model, places, request.weights);
  require_values(out.model->parameters());
  out.model->train(false);
  // A folder of another program without a tokenizer says nothing about its ids: bytes would be a guess.
  if (!huggingface || !out.config.data.tokenizer_path.empty()) {
    out.tokenizer = tokenizer_of(out.config, registries);
  }
  if (request.tokenizer == "bytes") {
    KF_CHECK(out.config.model.vocab_size >= kByteVocab, Code::config, "--tokenizer bytes: the model has {} ids, and bytes need {}",
             out.config.model.vocab_size, kByteVocab);
    out.tokenizer = std::make_unique<ByteTokenizer>(out.config.model.vocab_size);
  }
  out.sampler = sampler_of(out.config, registries);
  out.prompts = {huggingface, out.config.data.add_bos};
  if (huggingface) {
    out.begins_documents = puts_bos_in_front(out.tokenizer.get()) && !sets_key(request.overrides, "data.add_bos");
    take_generation_file(out);
  } else {
    out.ends = answer_ends(out.config, out.tokenizer.get());
    const CheckpointReader reader(out.path);
    out.step = reader.state().run.step;
    out.products = kept_products(reader.state().kernels);
  }
  return out;
}

config::Config settings_for_inference(const InferenceRequest& request, const Registries& registries) {
  const fs::path folder = folder_of(request.source);
  return load_settings(request, folder, is_foreign(folder), registries);
}

EvalResult evaluate_loaded(const LoadedModel& loaded, const config::Config& config, at::Device device, const Registries& registries) {
  KF_CHECK(config.eval.enabled, Code::config,
           "the job of {} evaluates on nothing (eval.enabled = false); give --data PATH (in Lua: m:evaluate(path))", loaded.path);
  config::Config own = config;
  if (loaded.begins_documents && reads_text(config.eval)) {
    own.data.add_bos = true;
    log::info("documents of text begin with BOS, as the tokenizer of {} has it (--data.add_bos=false leaves it out)", loaded.path);
  }
  std::vector<EvalSet> sets = make_eval_sets(own, {0, 1, &registries});
  if (loaded.tokenizer == nullptr) {
    log::info("no bits per byte: nothing turns these ids into text (data.tokenizer_path)");
  }
  const EvalOptions options{device, loaded.model->head().has_value(), loaded.tokenizer.get(), static_cast<std::uint64_t>(config.train.seed),
                            config.eval.mtp_head};
  const ProductsScope products(loaded.products);
  std::vector<EvalResult> results;
  for (EvalSet& set : sets) {
    KF_CHECK(!set.text || loaded.tokenizer != nullptr, Code::config,
             "nothing turns text ({}) into ids for the model of {}: give --tokenizer, or token files", set.data->describe(), loaded.path);
    results.push_back(evaluate_sums(*loaded.model, *set.data, options).result(loaded.step.value_or(0), set.data->describe()));
    results.back().name = set.name;
  }
  KF_CHECK(std::any_of(results.begin(), results.end(), [](const EvalResult& set) { return set.has_loss(); }), Code::data,
           "there is nothing to evaluate: no label counts");
  if (results.front().name.empty()) {
    return results.front();
  }
  const std::vector<bool> together(results.size(), true);
  return join(std::move(results), together);
}

GenerateRequest generate_request(const LoadedModel& loaded, at::Device device) {
  GenerateRequest request;
  request.tokenizer = loaded.tokenizer.get();
  request.ends = loaded.ends;
  request.max_positions = loaded.config.model.max_seq_len;
  request.vocab_size = loaded.config.model.vocab_size;
  request.device = device;
  return request;
}

std::vector<Completion> generate_loaded(const LoadedModel& loaded, const std::vector<std::string>& prompts, GenerateOptions options,
                                        at::Device device) {
  KF_CHECK(loaded.tokenizer != nullptr, Code::config,
           "nothing turns text into ids for the model of {}: its job names no tokenizer (data.tokenizer_path)", loaded.path);
  GenerateRequest request = generate_request(loaded, device);
  for (const std::string& prompt : prompts) {
    request.prompts.push_back(prompt_ids(*loaded.tokenizer, prompt, loaded.prompts));
  }
  request.options = std::move(options);
  request.options.strategy = loaded.sampler.get();
  const ProductsScope products(loaded.products);
  return generate(*loaded.model, request);
}

}  // namespace kf
