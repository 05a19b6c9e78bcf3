#include "checkpoint/weights.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>

#include <algorithm>
#include <map>
#include <set>

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

  void check(const fs::path& path) const {
    const std::string text =
        list_names("missing in the file", missing) + list_names("unknown to the model", unexpected) + list_names("do not fit", misfits);
    KF_CHECK(text.empty(), Code::checkpoint, "{} does not hold the weights of this model{}", path, text);
  }
};

/// Which tensor of the file each parameter takes; every name by which the model knows it counts.
class Matcher {
 public:
  Matcher(const NamedTensors& tensors, const fs::path& path, Model& model)
      : tensors_(tensors), names_(tensors.names.begin(), tensors.names.end()) {
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
    faults_.check(path);
  }

  const std::vector<std::pair<ParameterPtr, at::Tensor>>& matches() const { return matches_; }

 private:
  void match(const ParameterPtr& parameter) {
    std::vector<std::string> candidates{parameter->name};
    candidates.insert(candidates.end(), aliases_[parameter->name].begin(), aliases_[parameter->name].end());
    at::Tensor chosen;
    bool fits = true;
    for (const std::string& name : candidates) {
      if (names_.count(name) == 0) {
        continue;
      }
      used_.insert(name);
      at::Tensor tensor = tensors_.get(name);
      const std::string misfit = misfit_of(name, tensor, *parameter, chosen);
      if (misfit.empty()) {
        chosen = std::move(tensor);
      } else {
        fits = false;
        faults_.misfits.push_back(misfit);
      }
    }
    if (!fits) {
      return;
    }
    if (chosen.defined()) {
      matches_.emplace_back(parameter, chosen);
    } else {
      faults_.missing.push_back(parameter->name);
    }
  }

  static std::string misfit_of(const std::string& name, const at::Tensor& tensor, const Parameter& parameter, const at::Tensor& chosen) {
    if (tensor.sizes() != parameter.shape) {
      return format("{} is {} in the file, {} in the model", name, shape_text(tensor.sizes().vec()), shape_text(parameter.shape));
    }
    if (!tensor.is_floating_point()) {
      return format("{} is {}, not a real type", name, c10::toString(tensor.scalar_type()));
    }
    if (chosen.defined() && !at::equal(tensor, chosen)) {
      return format("{} and {} are one weight in the model, but differ in the file", parameter.name, name);
    }
    return {};
  }

  const NamedTensors& tensors_;
  std::set<std::string> names_;
  std::map<std::string, std::vector<std::string>> aliases_;
  std::set<std::string> used_;
  Faults faults_;
  std::vector<std::pair<ParameterPtr, at::Tensor>> matches_;
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
    weights.emplace_back(parameter->name, parameter->master);
  }
  return weights;
}

void load_weights_from(const SafetensorsFile& file, const fs::path& path, Model& model) {
  load_weights_from(tensors_in(file, path), path, model);
}

void load_weights_from(const NamedTensors& tensors, const fs::path& path, Model& model) {
  const Matcher matcher(tensors, path, model);
  const at::NoGradGuard no_grad;
  for (const auto& [parameter, tensor] : matcher.matches()) {
    parameter->master.copy_(tensor);
    parameter->publish();
  }
}

}  // namespace kf
