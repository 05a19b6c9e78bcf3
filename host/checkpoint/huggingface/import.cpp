#include "checkpoint/huggingface/import.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "checkpoint/huggingface/layouts.h"
#include "checkpoint/huggingface/names.h"
#include "checkpoint/huggingface/outward.h"
#include "checkpoint/huggingface/rules.h"
#include "config/huggingface/huggingface.h"
#include "config/tree/json.h"
#include "core/error.h"
#include "core/log.h"

namespace kf {
namespace {

using huggingface::by_groups;
using huggingface::by_rows;
using huggingface::cut;
using huggingface::Layout;
using huggingface::Piece;
using huggingface::Rule;

/// Buffers that older files hold and no forward reads.
bool without_effect(const std::string& name) {
  return name.ends_with(".rotary_emb.inv_freq") || name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         name.ends_with(".mlp.act_fn.beta") || name.ends_with(".mlp.act_fn.eps") ||  // see check_constants
         name.ends_with(".attn.attention.bias") || name.ends_with(".attn.attention.masked_bias");
}

/// Multi-token prediction layers, which files of these families hold and their classes do not read.
bool behind_last_block(const std::string& name, const std::string& model_type, std::int64_t layers) {
  const std::string base = "model.layers.";
  static const std::set<std::string> families{"deepseek_v3", "glm4_moe", "glm4_moe_lite", "hy_v3", "sarvam_mla", "sarvam_moe"};
  if (model_type == "exaone_moe" || model_type == "mellum") {
    return name.starts_with("mtp.");
  }
  return families.count(model_type) > 0 && name.starts_with(base) && std::atoll(name.c_str() + base.size()) >= layers;
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
std::string with_base(const std::string& name, const huggingface::Rules& rules) {
  const std::string base = rules.front().theirs.substr(0, rules.front().theirs.find('.') + 1);
  const auto known = [&](const std::string& candidate) {
    return std::any_of(rules.begin(), rules.end(),
                       [&](const Rule& rule) { return huggingface::match(rule.theirs, candidate).has_value(); });
  };
  return !known(name) && known(base + name) ? base + name : name;
}

/// The name that a text model's own file has for a tensor of a model that also sees; empty for what does the seeing.
std::string text_name(const std::string& name) {
  for (const char* seeing : {"vision_tower.", "vision_model.", "multi_modal_projector.", "audio_tower.", "embed_vision.", "embed_audio."}) {
    if (name.starts_with(seeing) || name.starts_with(std::string("model.") + seeing)) {
      return "";
    }
  }
  if (name.starts_with("model.language_model.")) {  // the newer form; the head lies outside
    return "model." + name.substr(21);
  }
  return name.starts_with("language_model.") ? name.substr(15) : name;
}

/// The tensors of the text model alone, under its names, where `theirs` are a model's that also sees.
NamedTensors text_alone(const NamedTensors& theirs, const std::string& model_type) {
  std::map<std::string, std::string> stored;  // by the text model's name
  for (const std::string& name : theirs.names) {
    if (const std::string own = text_name(name); !own.empty()) {
      stored[own] = name;
    }
  }
  const bool wrapped = std::any_of(stored.begin(), stored.end(), [](const auto& entry) { return entry.first != entry.second; });
  if (!wrapped && stored.size() == theirs.names.size()) {
    return theirs;
  }
  log::info("left out {} tensors with which the model sees: only its text part, {}, is read", theirs.names.size() - stored.size(),
            model_type);
  NamedTensors out;
  for (const auto& [own, name] : stored) {
    out.names.push_back(own);
  }
  out.get = [get = theirs.get, stored](const std::string& name) { return get(stored.at(name)); };
  return out;
}

/// xIELU's constants, which files of Apertus hold as tensors: ours are fixed.
void check_constants(const NamedTensors& theirs) {
  const auto is_near = [&](const std::string& name, double value) {
    const double stored = theirs.get(name).to(at::kDouble).item<double>();
    KF_CHECK(std::abs(stored - value) <= 0.01 * std::abs(value), Code::checkpoint, "{} is {}; only {} is understood", name, stored, value);
  };
  for (const std::string& name : theirs.names) {
    if (name.ends_with(".mlp.act_fn.beta")) {
      is_near(name, 0.5);
    } else if (name.ends_with(".mlp.act_fn.eps")) {
      is_near(name, -1e-6);
    }
  }
}

/// Our names and the pieces they are made of.
class Renaming {
 public:
  Renaming(const NamedTensors& theirs, const huggingface::Rules& rules, Model& model, std::int64_t head) : rules_(rules), head_(head) {
    for (const ParameterPtr& parameter : model.parameters()) {
      shapes_[parameter->name] = parameter->shape;
    }
    for (const std::string& name : theirs.names) {
      if (!without_effect(name)) {
        add(name, with_base(name, rules));
      }
    }
  }

  const std::map<std::string, Piece>& pieces() const { return pieces_; }

 private:
  void add(const std::string& stored, const std::string& name) {
    std::int64_t first = 0;
    std::vector<std::string> together;  // of ours, rows or columns of this one
    bool known = false;
    for (const Rule& rule : rules_) {
      const auto numbers = huggingface::match(rule.theirs, name);
      if (!numbers) {
        continue;
      }
      known = true;
      const std::string ours = huggingface::filled(rule.ours, *numbers);
      Piece piece{stored, rule.layout};
      if (rule.layout == Layout::stacked || rule.layout == Layout::stacked_swapped) {
        piece.count = length(ours, 0);
      } else if (by_groups(rule.layout) || rule.layout == Layout::half_swapped) {
        piece.head = head_;
        piece.count = length(ours, 0);
      } else if (by_rows(rule.layout) || rule.layout == Layout::columns) {
        piece.first = first;
        piece.count = length(ours, rule.layout == Layout::columns ? 1 : 0);
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

  /// Of one of the model's parameters; 0 where it has no such.
  std::int64_t length(const std::string& ours, std::size_t dim) const {
    const auto found = shapes_.find(ours);
    const bool scalar = found != shapes_.end() && found->second.empty();
    return scalar ? 1 : found == shapes_.end() || found->second.size() <= dim ? 0 : found->second[dim];
  }

  const huggingface::Rules& rules_;
  std::int64_t head_;                                        // width of a head
  std::map<std::string, std::vector<std::int64_t>> shapes_;  // of the model's parameters
  std::map<std::string, Piece> pieces_;
};

}  // namespace

NamedTensors as_ours(const NamedTensors& theirs, const fs::path& folder, Model& model) {
  const std::string model_type = config::model_type_of(folder / "config.json");
  NamedTensors read = text_alone(theirs, model_type);
  check_constants(read);
  const std::int64_t blocks = count_blocks(model);
  const std::size_t all = read.names.size();
  std::erase_if(read.names, [&](const std::string& name) { return behind_last_block(name, model_type, blocks); });
  if (const std::size_t left = all - read.names.size(); left > 0) {
    log::info("left out {} tensors of multi-token prediction layers, which {} does not read", left, model_type);
  }
  const huggingface::Rules rules = huggingface::rules_for(model_type, huggingface::numbered_shared_experts(model));
  const Renaming renaming(read, rules, model, huggingface::head_dim_in(config::text_config_of(folder / "config.json")));
  NamedTensors out;
  for (const auto& [name, piece] : renaming.pieces()) {
    out.names.push_back(name);
  }
  out.get = [get = read.get, pieces = renaming.pieces()](const std::string& name) {
    const Piece& piece = pieces.at(name);
    return cut(get(piece.theirs), piece);
  };
  return out;
}

void load_huggingface(const fs::path& folder, Model& model, const VocabRows& rows, const Placements& placements, const LoadRules& rules) {
  const std::string type = config::model_type_of(folder / "config.json");
  const NamedTensors ours = as_ours(renamed(open_huggingface(folder), rules.names, folder), folder, model);
  load_weights_from(ours, folder, model, rows, placements, rules);
  log::info("{}: weights of a {} model, {} tensors", folder, type, ours.names.size());
}

}  // namespace kf
