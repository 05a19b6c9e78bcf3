#include "checkpoint/huggingface/import.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdlib>

#include "checkpoint/huggingface/names.h"
#include "checkpoint/huggingface/rules.h"
#include "checkpoint/safetensors.h"
#include "config/huggingface/huggingface.h"
#include "config/json.h"
#include "core/error.h"
#include "core/log.h"

namespace kf {
namespace {

using huggingface::Layout;
using huggingface::Rule;

constexpr const char* kIndex = "model.safetensors.index.json";

/// Tensor names by file, from the index of a sharded folder.
std::map<std::string, std::string> read_index(const fs::path& path) {
  const config::Node json = config::parse_json(read_file(path), path.string());
  const config::Node* map = json.table() ? json.table()->find("weight_map") : nullptr;
  KF_CHECK(map && map->table(), Code::checkpoint, "{} has no weight_map", path);
  std::map<std::string, std::string> files;
  for (const auto& [name, file] : *map->table()) {
    const auto* text = std::get_if<std::string>(&file.value);
    KF_CHECK(text && text->find('/') == std::string::npos, Code::checkpoint, "{}: weight_map.{} is no file name of the folder", path, name);
    files[name] = *text;
  }
  return files;
}

/// Buffers that older files hold and no forward reads.
bool without_effect(const std::string& name) {
  return name.ends_with(".rotary_emb.inv_freq") || name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
}

/// Multi-token prediction layers, which DeepSeek V3's files hold behind the last block and its class does not read.
bool behind_last_block(const std::string& name, const std::string& model_type, std::int64_t layers) {
  const std::string base = "model.layers.";
  return model_type == "deepseek_v3" && name.starts_with(base) && std::atoll(name.c_str() + base.size()) >= layers;
}

/// Blocks of a model by the names of its weights: "layers.N.".
std::int64_t count_blocks(Model& model) {
  std::int64_t last = -1;
  for (const ParameterPtr& parameter : model.parameters()) {
    if (parameter->name.starts_with("layers.")) {
      last = std::max<std::int64_t>(last, std::atoll(parameter->name.c_str() + 7));
    }
  }
  return last + 1;
}

/// The name with the base that a bare model's file leaves out: "h.0.ln_1.weight" is "transformer.h.0.ln_1.weight".
std::string with_base(const std::string& name, const std::string& base) {
  return name.starts_with(base) || name.starts_with("lm_head.") ? name : base + name;
}

/// Part of a tensor of the file.
struct Piece {
  std::string theirs;
  Layout layout = Layout::same;
  std::int64_t first = 0;  // rows: where ours begins
  std::int64_t count = 0;
  std::int64_t all = 0;  // rows of the tensor by the model
};

at::Tensor cut(const at::Tensor& whole, const Piece& piece) {
  const auto every_second = [&](std::int64_t first) { return whole.slice(-1, first, whole.size(-1), 2); };
  const auto rows = [&](const at::Tensor& x) {
    KF_CHECK(x.size(0) == piece.all, Code::checkpoint, "{} has {} rows; the model wants {}", piece.theirs, x.size(0), piece.all);
    return x.narrow(0, piece.first, piece.count);
  };
  switch (piece.layout) {
    case Layout::same: return whole;
    case Layout::transposed: return whole.t();
    case Layout::rows: return rows(whole);
    case Layout::rows_of_transposed: return rows(whole.t());
    case Layout::even: return every_second(0);
    case Layout::odd: return every_second(1);
  }
  return whole;
}

bool by_rows(Layout layout) { return layout == Layout::rows || layout == Layout::rows_of_transposed; }

/// Our names and the pieces they are made of.
class Renaming {
 public:
  Renaming(const NamedTensors& theirs, const huggingface::Rules& rules, Model& model) : rules_(rules) {
    for (const ParameterPtr& parameter : model.parameters()) {
      rows_[parameter->name] = parameter->shape.empty() ? 1 : parameter->shape[0];
    }
    const std::string base = rules.front().theirs.substr(0, rules.front().theirs.find('.') + 1);
    for (const std::string& name : theirs.names) {
      if (!without_effect(name)) {
        add(name, with_base(name, base));
      }
    }
  }

  const std::map<std::string, Piece>& pieces() const { return pieces_; }

 private:
  void add(const std::string& stored, const std::string& name) {
    std::int64_t first = 0;
    std::vector<std::string> together;  // of ours, rows of this one
    bool known = false;
    for (const Rule& rule : rules_) {
      const auto numbers = huggingface::match(rule.theirs, name);
      if (!numbers) {
        continue;
      }
      known = true;
      const std::string ours = huggingface::filled(rule.ours, *numbers);
      Piece piece{stored, rule.layout};
      if (by_rows(rule.layout)) {
        const auto found = rows_.find(ours);
        piece.first = first;
        piece.count = found == rows_.end() ? 0 : found->second;
        first += piece.count;
        together.push_back(ours);
      }
      pieces_[ours] = piece;
    }
    for (const std::string& ours : together) {
      pieces_[ours].all = first;
    }
    if (!known) {
      pieces_[stored] = Piece{stored};
    }
  }

  const huggingface::Rules& rules_;
  std::map<std::string, std::int64_t> rows_;  // of the model's parameters
  std::map<std::string, Piece> pieces_;
};

}  // namespace

NamedTensors open_huggingface(const fs::path& folder) {
  std::map<std::string, std::string> where;  // tensor to file
  std::map<std::string, std::shared_ptr<SafetensorsFile>> files;
  const auto open = [&](const std::string& file) {
    std::shared_ptr<SafetensorsFile>& opened = files[file];
    if (!opened) {
      KF_CHECK(fs::exists(folder / file), Code::checkpoint, "{} is missing: {} names it", folder / file, kIndex);
      opened = std::make_shared<SafetensorsFile>(folder / file);
    }
    return opened;
  };
  if (fs::exists(folder / kIndex)) {
    where = read_index(folder / kIndex);
    for (const auto& [name, file] : where) {
      KF_CHECK(open(file)->contains(name), Code::checkpoint, "{} holds no {}, which {} promises", folder / file, name, kIndex);
    }
  } else {
    KF_CHECK(fs::exists(folder / "model.safetensors"), Code::checkpoint,
             "{} holds neither model.safetensors nor {}; other formats are not read: save the model with safe_serialization = True", folder,
             kIndex);
    for (const std::string& name : open("model.safetensors")->names()) {
      where[name] = "model.safetensors";
    }
  }
  NamedTensors out;
  for (const auto& [name, file] : where) {
    out.names.push_back(name);
  }
  out.get = [where, files](const std::string& name) { return files.at(where.at(name))->tensor(name); };
  return out;
}

NamedTensors as_ours(const NamedTensors& theirs, const std::string& model_type, Model& model) {
  NamedTensors read = theirs;
  const std::int64_t blocks = count_blocks(model);
  std::erase_if(read.names, [&](const std::string& name) { return behind_last_block(name, model_type, blocks); });
  if (const std::size_t left = theirs.names.size() - read.names.size(); left > 0) {
    log::info("left out {} tensors of multi-token prediction layers, which {} does not read", left, model_type);
  }
  const Renaming renaming(read, huggingface::rules_of(model_type), model);
  NamedTensors out;
  for (const auto& [name, piece] : renaming.pieces()) {
    out.names.push_back(name);
  }
  out.get = [get = theirs.get, pieces = renaming.pieces()](const std::string& name) {
    const Piece& piece = pieces.at(name);
    return cut(get(piece.theirs), piece);
  };
  return out;
}

void load_huggingface(const fs::path& folder, Model& model) {
  const std::string type = config::model_type_of(folder / "config.json");
  const NamedTensors ours = as_ours(open_huggingface(folder), type, model);
  load_weights_from(ours, folder, model);
  log::info("{}: weights of a {} model, {} tensors", folder, type, ours.names.size());
}

}  // namespace kf
