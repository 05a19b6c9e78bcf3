#include "checkpoint/foreign/gpt2.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/log.h"

namespace kf {
namespace {

using pickle::Kind;
using pickle::Value;

constexpr std::string_view kBlocks = "transformer.h.";

struct Words {
  std::string_view theirs, ours;
};
constexpr Words kWhole[] = {{"transformer.wte.weight", "token_embedding.embedding.weight"},
                            {"transformer.wpe.weight", "position_embedding.embedding.weight"},
                            {"transformer.ln_f.weight", "norm.weight"},
                            {"transformer.ln_f.bias", "norm.bias"},
                            {"lm_head.weight", "output_head.proj.weight"}};
constexpr Words kOfBlock[] = {{"ln_1", "attention_norm"},
                              {"ln_2", "mlp_norm"},
                              {"attn.c_proj", "attention.o_proj"},
                              {"mlp.c_fc", "mlp.up_proj"},
                              {"mlp.c_proj", "mlp.down_proj"}};
constexpr std::string_view kThirds[] = {"q_proj", "k_proj", "v_proj"};

/// A tensor of ours: all of one of theirs, or a third of its rows.
struct Part {
  std::string theirs;
  std::int64_t third = -1;
};

class Names {
 public:
  Names(const NamedTensors& theirs, const fs::path& path) {
    for (const std::string& name : theirs.names) {
      if (name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias")) {
        continue;  // masks
      }
      if (name.ends_with(".attn.c_attn.weight")) {
        const Shape shape = theirs.ranged->kind(name).shape;
        KF_CHECK(shape.size() == 2 && shape[0] == 3 * shape[1], Code::checkpoint,
                 "{}: '{}' is no matrix of three times as many rows as columns. If the file is Hugging Face's GPT-2, give its folder, with "
                 "config.json, instead",
                 path, name);
      }
      add(name);
    }
  }

  const std::map<std::string, Part>& parts() const { return parts_; }

 private:
  void add(const std::string& name) {
    for (const Words& words : kWhole) {
      if (name == words.theirs) {
        parts_[std::string(words.ours)] = {name};
        return;
      }
    }
    const std::size_t dot = name.starts_with(kBlocks) ? name.find('.', kBlocks.size()) : std::string::npos;
    const std::size_t last = name.rfind('.');
    if (dot != std::string::npos && last > dot) {
      const std::string block = "layers." + name.substr(kBlocks.size(), dot + 1 - kBlocks.size());
      const std::string module = name.substr(dot + 1, last - dot - 1), kind = name.substr(last);
      if (add_of_block(name, block, module, kind)) {
        return;
      }
    }
    parts_[name] = {name};  // unknown: whoever reads it says so
  }

  bool add_of_block(const std::string& name, const std::string& block, const std::string& module, const std::string& kind) {
    if (module == "attn.c_attn") {
      for (std::int64_t third = 0; third < 3; ++third) {
        parts_[block + "attention." + std::string(kThirds[third]) + kind] = {name, third};
      }
      return true;
    }
    const auto* const words =
        std::find_if(std::begin(kOfBlock), std::end(kOfBlock), [&](const Words& one) { return module == one.theirs; });
    if (words == std::end(kOfBlock)) {
      return false;
    }
    parts_[block + std::string(words->ours) + kind] = {name};
    return true;
  }

  std::map<std::string, Part> parts_;
};

std::int64_t number(const Value& args, std::string_view key) {
  const std::optional<Value> value = args.find(key);
  return value && value->is(Kind::integer) ? value->integer() : 0;
}

std::string words_for(const Gpt2Settings& s) {
  return format(
      "a GPT-2 of {}: model.n_layers = {}, model.n_heads = {}, model.dim = {}, model.vocab_size = {}, model.max_seq_len = {}, "
      "model.ffn_hidden_dim = {}, model.norm_type = \"layernorm\", model.activation = \"{}\", model.pos_embedding = \"learned\", "
      "model.tie_embeddings = true, {}",
      s.program, s.layers, s.heads, s.dim, s.vocab, s.positions, 4 * s.dim, s.activation,
      s.biases ? "model.attn_bias = \"all\", model.mlp_bias = true" : "model.norm_bias = false");
}

/// Heads do not show in shapes: a model with others would compute something else without a word.
void check_heads(const Gpt2Settings& settings, const fs::path& path, Model& model) {
  for (const ParameterPtr& parameter : model.parameters()) {
    const bool queries = parameter->name.starts_with("layers.") && parameter->name.ends_with(".attention.q_proj.weight");
    if (queries && settings.heads > 0 && parameter->shape[0] == settings.dim) {
      KF_CHECK(parameter->split_unit * settings.heads == settings.dim, Code::checkpoint,
               "{} is a model with {} heads, and the job's has {}: set model.n_heads = {}", path, settings.heads,
               settings.dim / parameter->split_unit, settings.heads);
    }
  }
}

}  // namespace

std::optional<Gpt2Settings> nanogpt_settings(const pickle::SavedFile& file) {
  const std::optional<Value> args = file.root().find("model_args");
  if (!args || !args->is(Kind::dict) || !args->find("n_layer") || !args->find("block_size")) {
    return std::nullopt;
  }
  const std::optional<Value> bias = args->find("bias");
  return Gpt2Settings{.program = "nanoGPT",
                      .activation = "gelu",
                      .layers = number(*args, "n_layer"),
                      .heads = number(*args, "n_head"),
                      .dim = number(*args, "n_embd"),
                      .vocab = number(*args, "vocab_size"),
                      .positions = number(*args, "block_size"),
                      .biases = !bias || !bias->is(Kind::boolean) || bias->boolean()};
}

NamedTensors gpt2_as_ours(const NamedTensors& theirs, const fs::path& path) {
  const auto parts = std::make_shared<const std::map<std::string, Part>>(Names(theirs, path).parts());
  NamedTensors out;
  for (const auto& [name, part] : *parts) {
    out.names.push_back(name);
  }
  const auto kind = [parts, kind = theirs.ranged->kind](const std::string& name) {
    const Part& part = parts->at(name);
    TensorKind of = kind(part.theirs);
    if (part.third >= 0) {
      of.shape.at(0) /= 3;
    }
    return of;
  };
  const auto read = [parts, kind, whole = theirs.ranged->kind, read = theirs.ranged->read](const TensorPiece& into) {
    const Part& part = parts->at(into.name);
    TensorPiece piece{part.theirs, whole(part.theirs).shape, into.range, into.tensor};
    if (part.third >= 0) {
      piece.range.begin[0] += part.third * piece.shape[0] / 3;
    }
    read(piece);
  };
  out.get = [kind, read](const std::string& name) {
    const TensorKind of = kind(name);
    at::Tensor tensor = at::empty(of.shape, at::TensorOptions().dtype(of.type));
    read({name, of.shape, Range::whole(of.shape), tensor});
    return tensor;
  };
  out.ranged = {kind, read};
  return out;
}

void load_gpt2(const NamedTensors& theirs, const Gpt2Settings& settings, const fs::path& path, Model& model, const VocabRows& rows,
               const Placements& placements, const LoadRules& rules) {
  LoadRules ours = rules;  // names are changed as they stand in the file
  ours.names = {};
  try {
    check_heads(settings, path, model);
    load_weights_from(gpt2_as_ours(renamed(theirs, rules.names, path), path), path, model, rows, placements, ours);
  } catch (Error& error) {
    throw error.context("the file holds " + words_for(settings));
  }
  log::info("{}: {}", path, words_for(settings));
}

}  // namespace kf
