#include "checkpoint/files/weights.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <map>
#include <set>

#include "checkpoint/files/head_source.h"
#include "core/error.h"
#include "core/log.h"
#include "model/weight_unit.h"

namespace kf {
namespace {

constexpr std::string_view kPrefix = "weights.";

/// A file's tensors under the names that the model knows.
NamedTensors tensors_in(const StoredTensors& stored) {
  std::map<std::string, std::string> names;  // ours, the file's
  NamedTensors all = named(stored);
  for (const std::string& name : all.names) {
    if (name.starts_with(kPrefix)) {
      names[name.substr(kPrefix.size())] = name;
    }
  }
  if (names.empty()) {
    return all;
  }
  log::info("{}: took the {} tensors named {}*, left {} others", stored.path(), names.size(), kPrefix, all.names.size() - names.size());
  return renamed(all, names);
}

/// NamedTensors, of which those that can only be had whole are held once they were asked for.
class Source {
 public:
  explicit Source(const NamedTensors& tensors) : tensors_(tensors) {}

  TensorKind kind(const std::string& name) {
    return tensors_.ranged ? tensors_.ranged->kind(name) : TensorKind{whole(name).sizes().vec(), whole(name).scalar_type()};
  }
  at::Tensor whole(const std::string& name) {
    if (tensors_.ranged) {
      return tensors_.get(name);
    }
    at::Tensor& held = held_[name];
    held = held.defined() ? held : tensors_.get(name);
    return held;
  }
  void read(const TensorPiece& into) {
    tensors_.ranged ? tensors_.ranged->read(into) : void(into.tensor.copy_(into.range.of(whole(into.name))));
  }

 private:
  const NamedTensors& tensors_;
  std::map<std::string, at::Tensor> held_;
};

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::vector<std::string> parts;
  for (const std::int64_t dim : shape) {
    parts.push_back(std::to_string(dim));
  }
  return "(" + join(parts, ", ") + ")";
}

/// Collects what does not fit, for one message.
struct Faults {
  std::vector<std::string> missing, unexpected, misfits;
  std::string remedy;

  void check(const fs::path& path) const {
    const std::string text = list_names("missing in the file", missing) + list_names("unknown to the model", unexpected) +
                             list_names("do not fit", misfits) + remedy;
    KF_CHECK(text.empty(), Code::checkpoint, "{} does not hold the weights of this model{}", path, text);
  }
};

/// A tensor of the file and the part of a parameter that it fills.
struct Match {
  ParameterPtr parameter;
  StoredView view;
  TensorKind kind;  // in the file: it may have fewer rows than the view (VocabRows)
};

/// Which tensors of the file each parameter takes; every name by which the model knows it counts, and stacks in either form.
class Matcher {
 public:
  Matcher(const std::vector<std::string>& names, Source& source, const fs::path& path, Model& model, const VocabRows& rows,
          const LoadRules& rules)
      : source_(source), rows_(rows), rules_(rules), names_(names.begin(), names.end()), layers_(count_layers(names)) {
    for (const auto& [alias, listed] : model.aliases()) {
      aliases_[listed].push_back(alias);
    }
    exclude(model, path);
    for (const ParameterPtr& parameter : model.parameters()) {
      if (excluded_.count(parameter->name) == 0) {
        match(parameter);
      }
    }
    for (const std::string& name : names_) {
      if (used_.count(name) == 0 && excluded_.count(name) == 0) {
        faults_.unexpected.push_back(name);
      }
    }
    if (holds_added_) {
      faults_.missing.insert(faults_.missing.end(), not_added_.begin(), not_added_.end());
    }
    if (!rules.strict) {
      pass_over(path);
    }
    faults_.remedy += remedy();
    faults_.check(path);
  }

  const std::vector<Match>& matches() const { return matches_; }

 private:
  /// Names of a weight, any of which leaves it out.
  std::vector<std::string> names_of(const Parameter& parameter) {
    std::vector<std::string> out{parameter.name};
    for (const std::vector<StoredView>& form : parameter.forms()) {
      for (const StoredView& view : form) {
        out.push_back(view.name);
      }
    }
    out.insert(out.end(), aliases_[parameter.name].begin(), aliases_[parameter.name].end());
    return out;
  }

  void exclude(Model& model, const fs::path& path) {
    if (rules_.exclude.empty()) {
      return;
    }
    std::vector<std::string> known(names_.begin(), names_.end());
    std::vector<std::vector<std::string>> weights;
    for (const ParameterPtr& parameter : model.parameters()) {
      weights.push_back(names_of(*parameter));
      known.insert(known.end(), weights.back().begin(), weights.back().end());
    }
    const std::vector<bool> chosen = excluded(rules_.exclude, known);
    for (std::size_t i = 0; i < known.size(); ++i) {
      if (chosen[i]) {
        excluded_.insert(known[i]);
      }
    }
    for (const std::vector<std::string>& names : weights) {
      if (std::any_of(names.begin(), names.end(), [&](const std::string& name) { return excluded_.count(name) > 0; })) {
        excluded_.insert(names.begin(), names.end());
      }
    }
    log::info("{}: checkpoint.exclude_from_loading leaves out {}", path, join({excluded_.begin(), excluded_.end()}, ", "));
  }

  /// checkpoint.strict = false: what would be faults is said instead.
  void pass_over(const fs::path& path) {
    if (!faults_.missing.empty()) {
      log::warn("{}: {} weights are missing there and keep their first values: {}", path, faults_.missing.size(),
                join(faults_.missing, ", "));
    }
    if (!faults_.unexpected.empty()) {
      log::warn("{}: {} tensors are unknown to the model and were left out: {}", path, faults_.unexpected.size(),
                join(faults_.unexpected, ", "));
    }
    faults_.missing.clear();
    faults_.unexpected.clear();
  }

  /// What to do where embedding and head alone do not fit.
  std::string remedy() const {
    // A shape begins with "(": a type that does not fit has another remedy, which is none here.
    static const std::string head = "output_head.proj.", embedding = "token_embedding.embedding.weight";
    const auto has = [](const std::vector<std::string>& names, const std::string& start) {
      return std::any_of(names.begin(), names.end(), [&](const std::string& name) { return name.starts_with(start); });
    };
    std::string out;
    if (has(faults_.missing, head + "weight") && names_.count(embedding) > 0) {
      out +=
          "\n  the file ties its head to its embedding: set model.tie_embeddings = true, or, with checkpoint.init_from, "
          "checkpoint.init_head = \"embedding\" for a copy or \"fresh\" for a new head";
    }
    if (has(faults_.missing, head + "bias")) {
      out +=
          "\n  the file's head has no bias: set model.head_bias = false, or, with checkpoint.init_from, checkpoint.init_head = "
          "\"embedding\" or \"fresh\"";
    }
    if (has(faults_.unexpected, head)) {
      out +=
          "\n  the model has no such part of a head: set model.tie_embeddings = false and model.head_bias as in the file, or, with "
          "checkpoint.init_from, checkpoint.init_head = \"embedding\"";
    }
    if (has(faults_.misfits, embedding + " and ") || has(faults_.misfits, head + "weight and ")) {
      out +=
          "\n  set model.tie_embeddings = false to keep both, or, with checkpoint.init_from, checkpoint.init_head = \"embedding\" to "
          "leave the file's head out";
    }
    if (has(faults_.misfits, head + "weight is (") && !has(faults_.misfits, embedding + " is ")) {
      out +=
          "\n  the file's head is of another size than its embedding: with checkpoint.init_from, checkpoint.init_head = \"fresh\" "
          "makes a new one";
    }
    if (has(faults_.misfits, embedding + " is (") && faults_.misfits.size() <= 2 && faults_.remedy.empty()) {
      out += "\n  set model.vocab_size to the rows of the file; above them, with checkpoint.init_from, checkpoint.init_vocab adds rows";
    }
    return out;
  }

  void match(const ParameterPtr& parameter) {
    std::vector<std::vector<StoredView>> forms = parameter->forms();
    for (const std::string& alias : aliases_[parameter->name]) {
      forms.push_back({{alias}});
    }
    std::vector<Match> chosen;
    bool fits = true;
    for (const std::vector<StoredView>& form : forms) {
      std::vector<Match> found;
      const bool whole = find(*parameter, form, found);
      fits = fits && whole;
      if (!whole || found.empty()) {
        continue;
      }
      if (chosen.empty()) {
        chosen = std::move(found);
      } else if (!agree(*parameter, chosen, found)) {
        fits = false;
        faults_.misfits.push_back(
            format("{} and {} are one weight in the model, but differ in the file", chosen.front().view.name, found.front().view.name));
      }
    }
    if (fits && chosen.empty() && parameter->counted && !is_fresh(rules_, parameter->name, layers_)) {
      for (const StoredView& view : forms.front()) {
        (parameter->added ? not_added_ : faults_.missing).push_back(view.name);
      }
    }
    holds_added_ = holds_added_ || (parameter->added && !chosen.empty());
    if (fits) {
      for (Match& match : chosen) {
        match.parameter = parameter;
        matches_.push_back(std::move(match));
      }
    }
  }

  /// The tensors of one form into `found`, none when the file has none of its names. False, and a fault, when one is missing or misshapen.
  bool find(const Parameter& parameter, const std::vector<StoredView>& form, std::vector<Match>& found) {
    const auto in_file = [&](const StoredView& view) { return names_.count(view.name) > 0; };
    if (std::none_of(form.begin(), form.end(), in_file)) {
      return true;
    }
    const std::size_t before_missing = faults_.missing.size(), before = before_missing + faults_.misfits.size();
    for (const StoredView& view : form) {
      if (!in_file(view)) {
        faults_.missing.push_back(view.name);
        continue;
      }
      used_.insert(view.name);
      const TensorKind kind = source_.kind(view.name);
      const Shape shape = view.shape(parameter.shape);
      const std::string misfit = misfit_of(view.name, widens(view, kind, shape) ? TensorKind{shape, kind.type} : kind, shape);
      if (misfit.empty()) {
        found.push_back({nullptr, view, kind});
      } else {
        faults_.misfits.push_back(misfit);
      }
    }
    const std::size_t missing = rules_.strict ? faults_.missing.size() : before_missing;
    return missing + faults_.misfits.size() == before;
  }

  /// Whether the tensor has one row an id and fewer than the model, which gives the others another way.
  bool widens(const StoredView& view, const TensorKind& kind, const Shape& shape) {
    const bool by_id = rows_.vocab_size > 0 && !shape.empty() && shape[0] == rows_.vocab_size && kind.shape.size() == shape.size() &&
                       std::equal(shape.begin() + 1, shape.end(), kind.shape.begin() + 1) && c10::isFloatingType(kind.type);
    if (!by_id || kind.shape[0] == shape[0]) {
      return false;
    }
    const std::int64_t have = kind.shape[0];
    if (have > shape[0] || rows_.fill == VocabRows::Fill::none) {
      faults_.remedy =
          have > shape[0]
              ? format("\n  the file has rows for {} ids: set model.vocab_size = {}; ids that the tokenizer lacks do no harm", have, have)
              : format(
                    "\n  the file has rows for {} ids and model.vocab_size is {}: checkpoint.init_vocab = \"mean\" (or \"init\") "
                    "makes the further rows",
                    have, shape[0]);
      return false;
    }
    log::info("{}: rows {} to {} are {}", view.name, have, shape[0] - 1,
              rows_.fill == VocabRows::Fill::mean ? "the mean of the file's" : "new, drawn by train.seed");
    return true;
  }

  bool agree(const Parameter& parameter, const std::vector<Match>& a, const std::vector<Match>& b) {
    const auto whole = [&](const std::vector<Match>& matches) {
      Shape shape = parameter.shape;
      if (matches.front().view.slice < 0 && !shape.empty()) {
        shape[0] = matches.front().kind.shape[0];  // fewer rows, where the rest is made
      }
      at::Tensor tensor = at::empty(shape, at::TensorOptions().dtype(matches.front().kind.type));
      for (const Match& match : matches) {
        match.view.of(tensor).copy_(source_.whole(match.view.name));
      }
      return tensor;
    };
    return at::equal(whole(a), whole(b));
  }

  static std::string misfit_of(const std::string& name, const TensorKind& kind, const Shape& shape) {
    if (kind.shape != shape) {
      return format("{} is {} in the file, {} in the model", name, shape_text(kind.shape), shape_text(shape));
    }
    if (!c10::isFloatingType(kind.type)) {
      return format("{} is {}, not a real type", name, c10::toString(kind.type));
    }
    return {};
  }

  Source& source_;
  VocabRows rows_;
  const LoadRules& rules_;
  std::set<std::string> names_;
  std::map<std::string, std::vector<std::string>> aliases_;
  std::int64_t layers_ = 0;         // of the file
  std::set<std::string> excluded_;  // all names of what is left out
  std::set<std::string> used_;
  Faults faults_;
  std::vector<std::string> not_added_;  // weights of adapters that the file lacks: no fault where it lacks all of them
  bool holds_added_ = false;
  std::vector<Match> matches_;
};

/// Copies what the file has, and makes the rows that it lacks (in the file's type, as if they had stood there).
void fill(const TensorPiece& piece, const TensorKind& kind, VocabRows::Fill how, Source& source) {
  const Range whole = Range::whole(kind.shape);
  if (piece.shape == kind.shape) {
    source.read(piece);
    return;
  }
  std::int64_t had = 0;  // rows of the piece that the file has
  if (const std::optional<Range> both = piece.range.overlap(whole)) {
    had = both->size[0];
    source.read({piece.name, kind.shape, *both, piece.tensor.narrow(0, 0, had)});
  }
  const at::Tensor more = piece.tensor.narrow(0, had, piece.range.size[0] - had);
  if (how == VocabRows::Fill::init) {
    more.copy_(more.to(kind.type));
    return;
  }
  Range columns = piece.range;
  columns.begin[0] = 0;
  columns.size[0] = 1;
  const at::Tensor mean = source.whole(piece.name).to(at::kFloat).mean(at::IntArrayRef{0}, /*keepdim=*/true);
  more.copy_(columns.of(mean).to(kind.type).expand(more.sizes()));
}

}  // namespace

std::string list_names(const char* what, const std::vector<std::string>& names) {
  if (names.empty()) {
    return {};
  }
  const auto shown = static_cast<std::ptrdiff_t>(std::min<std::size_t>(names.size(), 10));
  const std::string list = join({names.begin(), names.begin() + shown}, ", ");
  return format("\n  {} ({}): {}{}", what, names.size(), list, names.size() > 10 ? ", ..." : "");
}

std::vector<std::pair<std::string, at::Tensor>> weights_of(Model& model) {
  std::vector<std::pair<std::string, at::Tensor>> weights;
  for (const TensorPiece& piece : pieces_of(model)) {
    weights.emplace_back(piece.name, piece.tensor);
  }
  return weights;
}

bool needs_first_values(const Parameter& parameter, const VocabRows& rows, const LoadRules& rules) {
  const bool by_id = std::find(parameter.shape.begin(), parameter.shape.end(), rows.vocab_size) != parameter.shape.end();
  const bool in_part = !rules.strict && parameter.stack.has_value();  // a file may have some experts of a stack
  return in_part || !parameter.counted || parameter.added || (by_id && rows.fill == VocabRows::Fill::init) ||
         head_is_own(rows.head, parameter.name);
}

NamedTensors named(const StoredTensors& stored) {
  return {stored.names(), [&stored](const std::string& name) { return stored.tensor(name); },
          NamedTensors::Ranged{[&stored](const std::string& name) {
                                 return TensorKind{stored.shape(name), stored.type(name)};
                               },
                               [&stored](const TensorPiece& into) { stored.read(into); }}};
}

void load_weights_from(const StoredTensors& stored, Model& model, const VocabRows& rows, const Placements& placements,
                       const LoadRules& rules) {
  load_weights_from(renamed(tensors_in(stored), rules.names, stored.path()), stored.path(), model, rows, placements, rules);
}

void load_weights_from(const NamedTensors& tensors, const fs::path& path, Model& model, const VocabRows& rows, const Placements& placements,
                       const LoadRules& rules) {
  const NamedTensors taken = with_head_from(rows.head, with_layers(rules.layers, tensors, model, path), model);
  Source source(taken);
  const Matcher matcher(taken.names, source, path, model, rows, rules);
  const at::NoGradGuard no_grad;
  for (const Match& match : matcher.matches()) {
    match.parameter->unfilled = false;
    if (const auto piece = piece_of(*match.parameter, match.view, placements(*match.parameter))) {
      fill(*piece, match.kind, rows.fill, source);
    }
  }
  publish(model.parameters());
}

}  // namespace kf
