#include <algorithm>
#include <iostream>
#include <map>
#include <set>

#include "app/command/checkpoint_commands.h"
#include "app/help/usage.h"
#include "app/line/option_list.h"
#include "checkpoint/checkpoint_error.h"
#include "checkpoint/foreign/gguf.h"
#include "checkpoint/huggingface/import.h"
#include "checkpoint/reader.h"
#include "config/huggingface/huggingface.h"
#include "config/tree/json.h"
#include "core/plain_file.h"
#include "core/text.h"
#include "core/text_table.h"

namespace kf {
namespace {

using Rows = std::vector<std::vector<std::string>>;

/// Settings that say what a checkpoint is of.
constexpr const char* kTold[] = {
    "model.preset",          "model.model_type", "model.dim",      "model.n_layers",       "model.n_heads",
    "model.num_experts",     "model.vocab_size", "optimizer.name", "optimizer.lr",         "train.seq_len",
    "train.mixed_precision", "adapter.name",     "averaging.type", "checkpoint.init_from", "data.dataset_path"};

std::string shape_text(const Shape& shape) {
  std::vector<std::string> parts;
  for (const std::int64_t dim : shape) {
    parts.push_back(std::to_string(dim));
  }
  return "(" + join(parts, ", ") + ")";
}

/// "layers.3.mlp.up_proj.weight" as "layers.*.mlp.up_proj.weight".
std::string without_numbers(const std::string& name) {
  std::vector<std::string> parts = split(name, '.');
  for (std::string& part : parts) {
    const bool number = !part.empty() && std::all_of(part.begin(), part.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    part = number ? "*" : part;
  }
  return join(parts, ".");
}

/// Tensors that are alike.
struct Alike {
  std::int64_t count = 0, numbers = 0, bytes = 0;
};

std::int64_t bytes_of(const TensorKind& kind) {
  return Range::whole(kind.shape).numel() * static_cast<std::int64_t>(c10::elementSize(kind.type));
}

/// By name without numbers, shape and type, in the order of names.
std::string weights_text(const NamedTensors& tensors) {
  std::map<std::vector<std::string>, Alike> groups;
  Alike all;
  for (const std::string& name : tensors.names) {
    const TensorKind kind = tensors.ranged->kind(name);
    Alike& group = groups[{without_numbers(name), shape_text(kind.shape), c10::toString(kind.type)}];
    for (Alike* sum : {&group, &all}) {
      ++sum->count;
      sum->numbers += Range::whole(kind.shape).numel();
      sum->bytes += bytes_of(kind);
    }
  }
  Rows rows{{"weights", "tensors", "shape", "type", "parameters", "bytes"}};
  for (const auto& [words, group] : groups) {
    rows.push_back({words[0], std::to_string(group.count), words[1], lower(words[2]), grouped(group.numbers),
                    human_bytes(static_cast<double>(group.bytes))});
  }
  rows.push_back({"all", std::to_string(all.count), "", "", grouped(all.numbers), human_bytes(static_cast<double>(all.bytes))});
  return text_table(rows, {1, 4, 5});
}

/// The SLOT of SLOT.WEIGHT; of what belongs to no weight its whole name.
std::string slot_of(const std::string& name, const std::set<std::string>& weights) {
  for (std::size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
    if (weights.contains(name.substr(dot + 1))) {
      return name.substr(0, dot);
    }
  }
  return without_numbers(name);
}

std::string optimizer_text(const StoredTensors& moments, const std::vector<std::string>& weights) {
  const std::set<std::string> known(weights.begin(), weights.end());
  std::map<std::vector<std::string>, Alike> slots;
  for (const std::string& name : moments.names()) {
    Alike& slot = slots[{slot_of(name, known), c10::toString(moments.type(name))}];
    ++slot.count;
    slot.bytes += bytes_of({moments.shape(name), moments.type(name)});
  }
  Rows rows{{"optimizer", "tensors", "type", "bytes"}};
  for (const auto& [words, slot] : slots) {
    rows.push_back({words[0], std::to_string(slot.count), lower(words[1]), human_bytes(static_cast<double>(slot.bytes))});
  }
  return slots.empty() ? "" : "\n" + text_table(rows, {1, 3});
}

std::string value_text(const config::Node& value) {
  const auto* const text = std::get_if<std::string>(&value.value);
  return text != nullptr ? *text : config::to_json(value);
}

/// Which program, and how many ranks, as far as it was noted.
void add_origin(Rows& rows, const StateFile& content, const fs::path& checkpoint) {
  const config::Node root = config::parse_json(read_file(checkpoint / kStateFile), kStateFile, config::JsonStyle::exact);
  for (const char* key : {"version", "versions", "mesh"}) {
    if (const config::Node* const found = root.table()->find(key)) {
      rows.push_back({std::string(key) == "version" ? "format" : key, value_text(*found)});
    }
  }
  const auto ranks = std::count_if(content.files.begin(), content.files.end(), [](const auto& file) {
    return file.first.starts_with("model") && file.first.ends_with(".safetensors");
  });
  rows.push_back({"ranks", std::to_string(ranks)});
}

void print_checkpoint(const fs::path& path) {
  const StateFile content = read_state(path);
  const CheckpointState& state = content.state;
  Rows rows{{"checkpoint", path.string()},
            {"step", grouped(state.run.step) + (state.max_steps > 0 ? " of " + grouped(state.max_steps) : "") +
                         (state.finished ? ", the run had ended" : "")},
            {"tokens", grouped(state.run.tokens)}};
  add_origin(rows, content, path);
  for (const char* key : kTold) {
    const config::Node* const value = state.job.table() != nullptr ? state.job.table()->find(key) : nullptr;
    const std::string text = value != nullptr && !value->is_null() ? value_text(*value) : "";
    if (!text.empty() && text != "none" && text != "0") {
      rows.push_back({key, text});
    }
  }
  if (!content.left_out.names.empty()) {
    rows.push_back({"left out", format("{} frozen weights of {}", content.left_out.names.size(), content.left_out.from)});
  }
  const auto open = [&](const char* file, const char* index) {
    return StoredTensors(path / (content.files.contains(file) ? file : index));
  };
  const StoredTensors weights = open(kModelFile, kModelIndex);
  const NamedTensors tensors = named(weights);
  std::cout << text_table(rows) << '\n' << weights_text(tensors) << optimizer_text(open(kOptimizerFile, kOptimizerIndex), tensors.names);
  for (const auto& [name, number] : content.optimizer_integers) {
    std::cout << name << " = " << number << '\n';
  }
  for (const auto& [name, number] : content.optimizer_reals) {
    std::cout << name << " = " << to_text(number) << '\n';
  }
}

/// What a file for llama.cpp says of its model.
void print_gguf(const fs::path& path) {
  const gguf::OpenFile file(path);
  Rows rows{{"file", path.string()}, {"format", "GGUF of version " + std::to_string(file.header().version)}};
  for (const auto& [key, value] : file.header().keys) {
    const bool told = key == "general.architecture" || key == "general.name" || key.starts_with(file.header().architecture() + ".");
    if (told && !value.is_null()) {
      rows.push_back({key, value_text(value)});
    }
  }
  std::map<std::string, std::int64_t> types;
  for (const gguf::TensorPlace& place : file.header().tensors) {
    ++types[std::string(gguf::name_of(place.type))];
  }
  std::vector<std::string> words;
  for (const auto& [name, count] : types) {
    words.push_back(format("{} {}", count, name));
  }
  rows.push_back({"stored as", join(words, ", ")});
  std::cout << text_table(rows) << "\nunder the names of llama.cpp; Q8_0 is read as float\n\n" << weights_text(file.tensors());
}

}  // namespace

int checkpoint_info(const Arguments& args) {
  const OptionList list = parse_options(args, {"kf-host checkpoint info", {}, {}, false});
  KF_CHECK(list.words.size() == 1, Code::config, "one CHECKPOINT at a time\n{}", usage::kCheckpoint);
  const fs::path source = list.words[0];
  KF_CHECK(path_exists(source), Code::checkpoint, "{} does not exist", source);
  as_checkpoint_error([&] {
    if (gguf::is_gguf_file(source)) {
      print_gguf(source);
    } else if (!fs::is_directory(source)) {
      const StoredTensors stored(source);
      std::cout << source.string() << "\n\n" << weights_text(named(stored));
    } else if (config::is_huggingface_folder(source) && !path_exists(source / kStateFile)) {
      std::cout << source.string() << ": " << config::model_type_of(source / "config.json") << ", under the names of Hugging Face\n\n"
                << weights_text(open_huggingface(source));
    } else {
      print_checkpoint(find_checkpoint(source, check_sizes));
    }
  });
  return 0;
}

}  // namespace kf
