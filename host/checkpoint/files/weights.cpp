#include "checkpoint/files/weights.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <map>
#include <set>

#include "checkpoint/files/head_source.h"
#include "core/error.h"
#include "core/log.h"

namespace kf {
namespace {

constexpr std::string_view kPrefix = "weights.";

/// A file's tensors under the names that the model knows.
NamedTensors tensors_in(const SafetensorsFile& file, const fs::path& path) {
  std::map<std::string, std::string> names;  // ours, the file's
  for (const std::string& name : file.names()) {
    if (name.starts_with(kPrefix)) {
      names[name.substr(kPrefix.size())] = name;
    }
  }
  if (!names.empty()) {
    log::info("{}: took the {} tensors named {}*, left {} others", path, names.size(), kPrefix, file.names().size() - names.size());
  } else {
    for (const std::string& name : file.names()) {
      names[name] = name;
    }
  }
  NamedTensors out;
  for (const auto& [ours, stored] : names) {
    out.names.push_back(ours);
  }
  out.get = [&file, names](const std::string& name) { return file.tensor(names.at(name)); };
  return out;
}

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
  at::Tensor tensor;
};

/// Which tensors of the file each parameter takes; every name by which the model knows it counts, and stacks in either form.
class Matcher {
 public:
  Matcher(const NamedTensors& tensors, const fs::path& path, Model& model, const VocabRows& rows)
      : tensors_(tensors), rows_(rows), names_(tensors.names.begin(), tensors.names.end()) {
    for (const auto& [alias, listed] : model.aliases()) {
      aliases_[listed].push_back(alias);
    }
    for (const ParameterPtr& parameter : model.parameters()) {
      match(parameter);
    }
    for (const std::string& name : names_) {
      if (used_.count(name) == 0) {
        faults_.unexpected.push_back(name);
      }
    }
    faults_.remedy += remedy();
    faults_.check(path);
  }

  const std::vector<Match>& matches() const { return matches_; }

 private:
  /// What to do where embedding and head alone do not fit.
  std::string remedy() const {
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
    if (has(faults_.misfits, head + "weight is ") && !has(faults_.misfits, embedding + " is ")) {
      out +=
          "\n  the file's head is of another size than its embedding: with checkpoint.init_from, checkpoint.init_head = \"fresh\" "
          "makes a new one";
    }
    if (has(faults_.misfits, embedding + " is ") && faults_.misfits.size() <= 2 && faults_.remedy.empty()) {
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
    if (fits && chosen.empty() && parameter->counted) {
      for (const StoredView& view : forms.front()) {
        faults_.missing.push_back(view.name);
      }
    }
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
    const std::size_t before = faults_.missing.size() + faults_.misfits.size();
    for (const StoredView& view : form) {
      if (!in_file(view)) {
        faults_.missing.push_back(view.name);
        continue;
      }
      used_.insert(view.name);
      at::Tensor tensor = widened(parameter, view, tensors_.get(view.name));
      const std::string misfit = misfit_of(view.name, tensor, view.shape(parameter.shape));
      if (misfit.empty()) {
        found.push_back({nullptr, view, std::move(tensor)});
      } else {
        faults_.misfits.push_back(misfit);
      }
    }
    return faults_.missing.size() + faults_.misfits.size() == before;
  }

  /// With rows for all ids of the model, where the tensor has one an id and fewer; the tensor itself where it fits or nothing widens it.
  at::Tensor widened(const Parameter& parameter, const StoredView& view, at::Tensor tensor) {
    const std::vector<std::int64_t> shape = view.shape(parameter.shape);
    const bool by_id = rows_.vocab_size > 0 && !shape.empty() && shape[0] == rows_.vocab_size &&
                       tensor.dim() == static_cast<std::int64_t>(shape.size()) &&
                       tensor.sizes().slice(1) == at::IntArrayRef(shape).slice(1) && tensor.is_floating_point();
    if (!by_id || tensor.size(0) == shape[0]) {
      return tensor;
    }
    const std::int64_t have = tensor.size(0);
    if (have > shape[0] || rows_.fill == VocabRows::Fill::none) {
      faults_.remedy =
          have > shape[0]
              ? format("\n  the file has rows for {} ids: set model.vocab_size = {}; ids that the tokenizer lacks do no harm", have, have)
              : format(
                    "\n  the file has rows for {} ids and model.vocab_size is {}: checkpoint.init_vocab = \"mean\" (or \"init\") "
                    "makes the further rows",
                    have, shape[0]);
      return tensor;
    }
    const at::NoGradGuard no_grad;
    at::Tensor out = at::empty(shape, tensor.options());
    out.narrow(0, 0, have).copy_(tensor);
    at::Tensor more = out.narrow(0, have, shape[0] - have);
    if (rows_.fill == VocabRows::Fill::mean) {
      more.copy_(tensor.to(at::kFloat).mean(at::IntArrayRef{0}, /*keepdim=*/true).expand(more.sizes()));
    } else {
      more.copy_(view.of(parameter.kept()).narrow(0, have, shape[0] - have));
    }
    log::info("{}: rows {} to {} are {}", view.name, have, shape[0] - 1,
              rows_.fill == VocabRows::Fill::mean ? "the mean of the file's" : "new, drawn by train.seed");
    return out;
  }

  static bool agree(const Parameter& parameter, const std::vector<Match>& a, const std::vector<Match>& b) {
    const auto whole = [&](const std::vector<Match>& matches) {
      const at::Tensor tensor = at::empty(parameter.shape, matches.front().tensor.options());
      for (const Match& match : matches) {
        match.view.of(tensor).copy_(match.tensor);
      }
      return tensor;
    };
    return at::equal(whole(a), whole(b));
  }

  static std::string misfit_of(const std::string& name, const at::Tensor& tensor, const std::vector<std::int64_t>& shape) {
    if (tensor.sizes() != shape) {
      return format("{} is {} in the file, {} in the model", name, shape_text(tensor.sizes().vec()), shape_text(shape));
    }
    if (!tensor.is_floating_point()) {
      return format("{} is {}, not a real type", name, c10::toString(tensor.scalar_type()));
    }
    return {};
  }

  const NamedTensors& tensors_;
  VocabRows rows_;
  std::set<std::string> names_;
  std::map<std::string, std::vector<std::string>> aliases_;
  std::set<std::string> used_;
  Faults faults_;
  std::vector<Match> matches_;
};

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
  for (const ParameterPtr& parameter : model.parameters()) {
    for (const StoredView& view : parameter->stored()) {
      weights.emplace_back(view.name, view.of(parameter->kept()));
    }
  }
  return weights;
}

bool needs_first_values(const Parameter& parameter, const VocabRows& rows) {
  const bool by_id = std::find(parameter.shape.begin(), parameter.shape.end(), rows.vocab_size) != parameter.shape.end();
  return !parameter.counted || (by_id && rows.fill == VocabRows::Fill::init) || head_is_own(rows.head, parameter.name);
}

void load_weights_from(const SafetensorsFile& file, const fs::path& path, Model& model, const VocabRows& rows) {
  load_weights_from(tensors_in(file, path), path, model, rows);
}

void load_weights_from(const NamedTensors& tensors, const fs::path& path, Model& model, const VocabRows& rows) {
  const NamedTensors taken = with_head_from(rows.head, tensors, model);
  const Matcher matcher(taken, path, model, rows);
  const at::NoGradGuard no_grad;
  for (const Match& match : matcher.matches()) {
    match.view.of(match.parameter->kept()).copy_(match.tensor);
    match.parameter->unfilled = false;
  }
  for (const ParameterPtr& parameter : model.parameters()) {
    parameter->publish();
  }
}

}  // namespace kf
