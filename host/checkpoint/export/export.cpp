#include "checkpoint/export/export.h"

#include <ATen/ATen.h>

#include <charconv>
#include <set>

#include "checkpoint/export/earlier.h"
#include "checkpoint/files/durable_file.h"
#include "checkpoint/files/narrowed.h"
#include "checkpoint/files/written_folder.h"
#include "checkpoint/huggingface/layouts.h"
#include "checkpoint/huggingface/outward.h"
#include "config/huggingface/huggingface.h"
#include "config/tree/json.h"
#include "core/error.h"
#include "core/group_sync.h"
#include "core/log.h"
#include "core/plain_file.h"

namespace kf {
namespace {

using huggingface::Layout;
using huggingface::OutwardPart;
using huggingface::OutwardTensor;

at::ScalarType type_named(const std::string& name) {
  KF_CHECK(name == "float32" || name == "bfloat16" || name == "float16", Code::config,
           "the type of exported weights is '{}'; float32, bfloat16 and float16 are there", name);
  return name == "float32" ? at::kFloat : name == "bfloat16" ? at::kBFloat16 : at::kHalf;
}

/// What chooses experts stays in fp32, as the classes that have it keep it.
bool stays_wide(const OutwardTensor& tensor) { return tensor.parts.front().parameter->name.ends_with(".expert_bias"); }

/// A tensor of the file, made when it is written; its shape is known before, from tensors without storage.
LazyTensor promised(const OutwardTensor& tensor, const WeightSource& weights, at::ScalarType wanted, std::int64_t head) {
  const at::ScalarType type = stays_wide(tensor) ? at::kFloat : wanted;
  std::vector<std::pair<Layout, at::Tensor>> shapes;
  for (const OutwardPart& part : tensor.parts) {
    shapes.emplace_back(part.layout, at::empty(part.view.shape(part.parameter->shape), at::TensorOptions().device(at::kMeta)));
  }
  const std::vector<std::int64_t> shape = huggingface::joined(tensor.name, shapes, head).sizes().vec();
  return {tensor.name, type, shape, [&tensor, &weights, type, head] {
            std::vector<std::pair<Layout, at::Tensor>> parts;
            for (const OutwardPart& part : tensor.parts) {
              parts.emplace_back(part.layout, narrowed(weights(*part.parameter, part.view), type, tensor.name));
            }
            return huggingface::joined(tensor.name, parts, head);
          }};
}

/// xIELU's constants, which the class of Apertus keeps as tensors.
void add_constants(std::vector<LazyTensor>& tensors, const std::string& family, at::ScalarType type) {
  if (family != "apertus") {
    return;
  }
  constexpr std::string_view end = "act_fn.alpha_p";
  std::vector<LazyTensor> more;
  for (const LazyTensor& tensor : tensors) {
    if (tensor.name.ends_with(end)) {
      const std::string base = tensor.name.substr(0, tensor.name.size() - 7);
      for (const auto& [name, value] : {std::pair("beta", 0.5), std::pair("eps", -1e-6)}) {
        more.push_back({base + name, type, {}, [number = value, type] { return at::full({}, number, type); }});
      }
    }
  }
  tensors.insert(tensors.end(), more.begin(), more.end());
}

/// Of GPT-2: every norm and every matrix of a layer, which is stored (in, out), has one.
void add_zero_biases(std::vector<LazyTensor>& tensors, at::ScalarType type) {
  std::vector<LazyTensor> more;
  for (const LazyTensor& tensor : tensors) {
    constexpr std::string_view end = "weight";
    if (tensor.name.starts_with("transformer.h.") || tensor.name.starts_with("transformer.ln_f.")) {
      const std::vector<std::int64_t> shape{tensor.shape.back()};
      more.push_back({tensor.name.substr(0, tensor.name.size() - end.size()) + "bias", type, shape,
                      [shape, type] { return at::zeros(shape, at::TensorOptions().dtype(type)); }});
    }
  }
  tensors.insert(tensors.end(), more.begin(), more.end());
}

void write_text(const fs::path& path, const std::string& text) {
  DurableFile file(path);
  file.write(text);
  file.commit();
}

config::Node ids(const std::vector<std::int64_t>& all) {
  if (all.size() == 1) {
    return config::Node(all.front());
  }
  config::Array out;
  for (const std::int64_t id : all) {
    out.emplace_back(id);
  }
  return config::Node(std::move(out));
}

/// The ids that begin and end texts, under the names that transformers has for them.
void put_ids(config::Table& json, const ExportFiles& files) {
  if (files.bos) {
    json["bos_token_id"] = config::Node(*files.bos);
  }
  if (!files.ends.empty()) {
    json["eos_token_id"] = ids(files.ends);
  }
}

void write_configs(const fs::path& folder, const config::ConfigJson& config, const ExportFiles& files, const std::string& dtype) {
  config::Table json = config.json;
  const char* const key = json.find("torch_dtype") != nullptr && json.find("dtype") == nullptr ? "torch_dtype" : "dtype";
  json[key] = config::Node(dtype);
  if (!config.of_source) {
    put_ids(json, files);
  }
  write_text(folder / "config.json", config::to_text_file(json));
  config::Table generation;
  put_ids(generation, files);
  if (!path_exists(folder / "generation_config.json") && !generation.empty()) {
    write_text(folder / "generation_config.json", config::to_text_file(generation));
  }
}

std::set<fs::path> names_in(const fs::path& folder) {
  std::set<fs::path> out;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    out.insert(entry.path().filename());
  }
  return out;
}

/// Weights of an earlier export that are no part of the new one.
void remove_other_shards(const fs::path& folder, const std::set<fs::path>& written) {
  for (const fs::path& name : names_in(folder)) {
    if (!written.contains(name) && is_shard(folder / name)) {
      fs::remove(folder / name);
    }
  }
}

void copy_in(const fs::path& from, const fs::path& folder) { write_text(folder / from.filename(), read_file(from)); }

/// The source's files as they were, and over them those of the tokenizer that the model was trained with.
void write_beside(const fs::path& folder, const ExportFiles& files) {
  std::error_code error;
  for (fs::directory_iterator it(files.source, error), end; !files.source.empty() && !error && it != end; it.increment(error)) {
    if (it->path().filename() != "config.json" && it->is_regular_file(error)) {
      copy_in(it->path(), folder);
    }
  }
  for (const fs::path& file : files.tokenizer) {
    if (file.filename() != "config.json" && (file.filename() != "generation_config.json" || files.source.empty())) {
      copy_in(file, folder);
    }
  }
  for (const auto& [name, text] : files.more) {
    if (!path_exists(folder / name)) {
      write_text(folder / name, text);
    }
  }
  for (const auto& [name, text] : files.changed) {
    write_text(folder / name, text);
  }
}

}  // namespace

std::uint64_t bytes_of(const std::string& text, const std::string& option) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string unit(end, text.data() + text.size());
  static const std::map<std::string, std::uint64_t> units{{"", 1},
                                                          {"KB", 1'000},
                                                          {"MB", 1'000'000},
                                                          {"GB", 1'000'000'000},
                                                          {"KiB", std::uint64_t{1} << 10},
                                                          {"MiB", std::uint64_t{1} << 20},
                                                          {"GiB", std::uint64_t{1} << 30}};
  const auto found = units.find(unit);
  KF_CHECK(error == std::errc() && found != units.end() && number > 0 && number <= (std::uint64_t{1} << 60) / found->second, Code::config,
           "{} is '{}'; give bytes, as 5GB, 500MB or 2GiB", option, text);
  return number * found->second;
}

config::ConfigJson export_config(const config::ModelConfig& settings, const fs::path& source, const std::string& family) {
  std::optional<config::Table> keys;
  if (!source.empty() && path_exists(source / "config.json")) {
    keys = config::text_config_of(source / "config.json");
  }
  return config::config_json_of(settings, keys ? &*keys : nullptr, family);
}

Exported export_model(const fs::path& asked, const config::ModelConfig& settings, Model& model, const WeightSource& weights,
                      const ExportFiles& files, const ExportOptions& options) {
  const fs::path folder = export_target(asked);
  const at::ScalarType type = type_named(options.dtype);
  Exported out;
  out.config = export_config(settings, files.source, options.family);
  const std::vector<OutwardTensor> outward = huggingface::outward_tensors(out.config.json, model);
  const std::int64_t head = huggingface::head_dim_in(out.config.json);
  std::vector<LazyTensor> tensors;
  for (const OutwardTensor& tensor : outward) {
    tensors.push_back(promised(tensor, weights, type, head));
  }
  add_constants(tensors, out.config.family, type);
  if (out.config.zero_biases) {
    add_zero_biases(tensors, type);
  }
  out.tensors = tensors.size();
  if (settings.mtp_layers > 0) {
    log::info("the export leaves the layers of multi-token prediction out (model.mtp_layers = {})", settings.mtp_layers);
  }
  try {
    fs::create_directories(folder.parent_path());
    remove_abandoned(folder.parent_path(), folder.filename().string());
    WrittenFolder pending(folder);
    write_beside(pending.path(), files);
    write_configs(pending.path(), out.config, files, options.dtype);
    out.shards = write_shards(pending.path(), tensors, options.max_shard_bytes, record_of(pending.path()));
    keep_others(folder, pending.path());
    const std::set<fs::path> written = names_in(pending.path());
    GroupSync::flush();
    pending.commit("config.json", [&] { remove_other_shards(folder, written); });
  } catch (const fs::filesystem_error& error) {
    fail(Code::checkpoint, "cannot write {}: {}; name a folder elsewhere, or make this one writable", folder, error.code().message());
  }
  return out;
}

}  // namespace kf
