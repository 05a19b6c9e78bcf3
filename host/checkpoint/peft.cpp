#include "checkpoint/peft.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "checkpoint/files/durable_file.h"
#include "checkpoint/files/safetensors.h"
#include "checkpoint/files/weights.h"
#include "checkpoint/files/written_folder.h"
#include "checkpoint/huggingface/names.h"
#include "checkpoint/huggingface/rules.h"
#include "config/huggingface/huggingface.h"
#include "config/tree/json.h"
#include "core/error.h"
#include "core/log.h"
#include "core/plain_file.h"
#include "data/hub/model.h"

namespace kf {
namespace {

using config::Node;
using config::Table;

constexpr const char* kConfigFile = "adapter_config.json";
constexpr const char* kTensorFile = "adapter_model.safetensors";
constexpr std::string_view kPrefix = "base_model.model.";
/// The ends of our names and of theirs.
constexpr std::pair<std::string_view, std::string_view> kEnds[] = {{".lora.a", ".lora_A.weight"}, {".lora.b", ".lora_B.weight"}};

/// The table of names that the model `base` has.
const huggingface::Rules& rules_for(const std::string& base) {
  const fs::path folder = base.empty() ? fs::path() : hub::locate(base, hub::ModelFiles::weights);
  return huggingface::rules_of(config::is_huggingface_folder(folder) ? config::model_type_of(folder / "config.json") : "llama");
}

/// Their name of our linear layer; nothing where they have no such layer, or its matrix in another form.
std::optional<std::string> their_layer(const std::string& layer, const huggingface::Rules& rules) {
  for (const huggingface::Rule& rule : rules) {
    if (const auto numbers = huggingface::match(rule.ours, layer + ".weight"); numbers && rule.theirs.ends_with(".weight")) {
      const std::string theirs = huggingface::filled(rule.theirs, *numbers);
      return rule.layout == huggingface::Layout::same ? std::optional(theirs.substr(0, theirs.size() - 7)) : std::nullopt;
    }
  }
  return std::nullopt;
}

/// "layers.0.attention.q_proj" of "layers.0.attention.q_proj.lora.a".
std::string layer_of(const std::string& name) { return name.substr(0, name.size() - kEnds[0].first.size()); }

/// Our layers to theirs: of all of them, or each to itself.
std::map<std::string, std::string> their_layers(const AdapterTensors& tensors, const std::string& base) {
  const huggingface::Rules& rules = rules_for(base);
  std::map<std::string, std::string> out;
  for (const auto& [name, tensor] : tensors) {
    const std::string layer = layer_of(name);
    const std::optional<std::string> theirs = their_layer(layer, rules);
    if (!theirs) {
      log::info("PEFT folder: {} has no counterpart of the same form in the base model's family; kf-host's own names stand there", layer);
      for (const auto& [other, unused] : tensors) {
        out[layer_of(other)] = layer_of(other);
      }
      return out;
    }
    out[layer] = *theirs;
  }
  return out;
}

std::string their_name(const std::string& name, const std::map<std::string, std::string>& layers) {
  const std::string_view end = name.ends_with(kEnds[0].first) ? kEnds[0].second : kEnds[1].second;
  return std::string(kPrefix) + layers.at(layer_of(name)) + std::string(end);
}

std::string last_word(const std::string& layer) { return layer.substr(layer.rfind('.') + 1); }

/// The last words of the layers' names, where every layer of the model with such a name has an adapter; else the whole names.
Node target_modules(Model& model, const std::map<std::string, std::string>& layers) {
  std::set<std::string> words, adapted;
  for (const auto& [ours, theirs] : layers) {
    words.insert(last_word(theirs));
    adapted.insert(last_word(ours));
  }
  bool all = true;
  for (const ParameterPtr& parameter : model.parameters()) {
    if (parameter->name.ends_with(".weight") && !parameter->added) {
      const std::string layer = parameter->name.substr(0, parameter->name.size() - 7);
      all = all && (adapted.count(last_word(layer)) == 0 || layers.count(layer) > 0);
    }
  }
  config::Array out;
  if (all) {
    for (const std::string& name : words) {
      out.emplace_back(name);
    }
  } else {
    for (const auto& [ours, theirs] : layers) {
      out.emplace_back(theirs);
    }
  }
  return Node(std::move(out));
}

Node config_of(Model& model, const config::AdapterConfig& adapter, const std::string& base,
               const std::map<std::string, std::string>& layers) {
  const bool whole = adapter.alpha == std::floor(adapter.alpha);
  Table out;
  out["peft_type"] = Node(std::string("LORA"));
  out["task_type"] = Node(std::string("CAUSAL_LM"));
  out["base_model_name_or_path"] = base.empty() ? Node() : Node(base);
  out["r"] = Node(adapter.rank);
  out["lora_alpha"] = whole ? Node(static_cast<std::int64_t>(adapter.alpha)) : Node(adapter.alpha);
  out["lora_dropout"] = Node(adapter.dropout);
  out["target_modules"] = target_modules(model, layers);
  out["bias"] = Node(std::string("none"));
  out["fan_in_fan_out"] = Node(false);
  out["inference_mode"] = Node(true);
  out["init_lora_weights"] = Node(true);
  out["modules_to_save"] = Node();
  out["rank_pattern"] = Node(Table());
  out["alpha_pattern"] = Node(Table());
  out["use_dora"] = Node(false);
  out["use_rslora"] = Node(false);
  return Node(std::move(out));
}

/// A file's keys that change what an adapter computes in a way that is not built.
void check_built(const Table& json, const fs::path& file) {
  const auto is = [&](const char* key, const char* word) {
    const Node* const node = json.find(key);
    const auto* const text = node != nullptr ? std::get_if<std::string>(&node->value) : nullptr;
    return text != nullptr && *text == word;
  };
  KF_CHECK(is("peft_type", "LORA"), Code::config, "{}: peft_type is not LORA; other adapters are not read", file);
  KF_CHECK(json.find("bias") == nullptr || is("bias", "none"), Code::config, "{}: bias is not none; trained biases are not read", file);
  for (const char* key : {"use_dora", "use_rslora", "lora_bias", "rank_pattern", "alpha_pattern", "modules_to_save", "megatron_config",
                          "trainable_token_indices", "target_parameters", "use_qalora", "alora_invocation_tokens", "arrow_config",
                          "layer_replication", "use_bdlora", "kasa_config", "monteclora_config"}) {
    const Node* const node = json.find(key);
    const bool off = node == nullptr || node->is_null() || node->value == Node(false).value ||
                     (node->table() != nullptr && node->table()->empty()) || (node->array() != nullptr && node->array()->empty());
    KF_CHECK(off, Code::config, "{}: {} is {}; only plain LoRA is read", file, key, config::to_text(*node));
  }
  // The others (pissa, olora, corda, loftq, ...) take a part of the base model's weights into the adapter, and PEFT takes it out of them.
  const Node* const init = json.find("init_lora_weights");
  const bool beside = init == nullptr || init->is_null() || std::holds_alternative<bool>(init->value) ||
                      is("init_lora_weights", "gaussian") || is("init_lora_weights", "eva") || is("init_lora_weights", "orthogonal");
  KF_CHECK(beside, Code::config,
           "{}: init_lora_weights is {}, which changes the weights of the base model, too; PEFT's save_pretrained writes a plain adapter "
           "of it with path_initial_model_for_weight_conversion",
           file, config::to_text(*init));
}

/// The number `key` of the file is that of the job.
void check_agrees(const Table& json, const fs::path& file, const char* key, double job, const char* setting) {
  const Node* const node = json.find(key);
  const auto* const whole = node != nullptr ? std::get_if<std::int64_t>(&node->value) : nullptr;
  const auto* const real = node != nullptr ? std::get_if<double>(&node->value) : nullptr;
  KF_CHECK(whole != nullptr || real != nullptr, Code::config, "{} has no number {}", file, key);
  const double value = whole != nullptr ? static_cast<double>(*whole) : *real;
  KF_CHECK(value == job, Code::config, "{}: {} is {}, and {} is {}; set {} = {}", file, key, value, setting, job, setting, value);
}

}  // namespace

AdapterTensors adapter_tensors(Model& model) {
  AdapterTensors out;
  for (const ParameterPtr& parameter : model.parameters()) {
    if (parameter->added) {
      out.emplace_back(parameter->name, parameter->master);
    }
  }
  return out;
}

void write_peft(const fs::path& asked, Model& model, const config::AdapterConfig& adapter, const std::string& base) {
  KF_CHECK(adapter.name == "lora", Code::config,
           "the adapter is '{}', and PEFT's folders are written of lora alone; --merged writes weights of any", adapter.name);
  const AdapterTensors ours = adapter_tensors(model);
  const std::map<std::string, std::string> layers = their_layers(ours, base);
  AdapterTensors theirs;
  for (const auto& [name, tensor] : ours) {
    theirs.emplace_back(their_name(name, layers), tensor.to(at::kFloat));
  }
  const fs::path folder = folder_named(asked);
  std::error_code error;
  const bool there = fs::exists(fs::symlink_status(folder, error));
  remove_abandoned(folder, WrittenFolder::kInside);
  KF_CHECK(!there || (fs::is_directory(folder, error) && (fs::is_empty(folder, error) || path_exists(folder / kConfigFile))), Code::config,
           "{} is there and holds no adapter; name another folder, or remove it", folder);
  try {
    fs::create_directories(folder.parent_path());
    remove_abandoned(folder.parent_path(), folder.filename().string());
    WrittenFolder pending(folder, there);  // what else lies beside an earlier adapter is its user's
    write_safetensors(pending.path() / kTensorFile, theirs, {{"format", "pt"}});
    DurableFile file(pending.path() / kConfigFile);
    file.write(config::to_json(config_of(model, adapter, base, layers), config::JsonStyle::plain, 2) + "\n");
    file.commit();
    pending.commit(kConfigFile);
  } catch (const fs::filesystem_error& fault) {
    fail(Code::checkpoint, "cannot write {}: {}; name a folder elsewhere, or make this one writable", folder, fault.code().message());
  }
}

void read_peft(const config::AdapterConfig& adapter, const std::string& base, Model& model) {
  const fs::path folder = adapter.path;
  const fs::path file = folder / kConfigFile;
  KF_CHECK(path_exists(file) && path_exists(folder / kTensorFile), Code::config, "adapter.path: {} does not hold {} and {}", folder,
           kConfigFile, kTensorFile);
  const Node json = config::parse_json(read_file(file), file.string());
  KF_CHECK(json.table() != nullptr, Code::config, "{} holds no object", file);
  check_built(*json.table(), file);
  check_agrees(*json.table(), file, "r", static_cast<double>(adapter.rank), "adapter.rank");
  check_agrees(*json.table(), file, "lora_alpha", adapter.alpha, "adapter.alpha");

  const SafetensorsFile stored(folder / kTensorFile);
  std::map<std::string, at::Tensor> all;  // the model as it is, and the adapters' values over it
  for (const auto& [name, tensor] : weights_of(model)) {
    all[name] = tensor;
  }
  const AdapterTensors ours = adapter_tensors(model);
  const std::map<std::string, std::string> layers = their_layers(ours, base);
  std::set<std::string> left(stored.names().begin(), stored.names().end());
  for (const auto& [name, tensor] : ours) {
    all.erase(name);
    if (const std::string theirs = their_name(name, layers); left.erase(theirs) > 0) {
      all[name] = stored.tensor(theirs);
    }
  }
  for (const std::string& name : left) {
    all[name] = stored.tensor(name);  // unknown: the message names it
  }
  NamedTensors named;
  for (const auto& [name, tensor] : all) {
    named.names.push_back(name);
  }
  named.get = [&all](const std::string& name) { return all.at(name); };
  load_weights_from(named, folder / kTensorFile, model);
  log::info("adapters of {} layers from {}", layers.size(), folder);
}

}  // namespace kf
