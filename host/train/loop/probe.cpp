#include "train/loop/probe.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <utility>

#include "core/text.h"
#include "train/loop/incidents.h"

namespace kf {
namespace {

Probe::Numbers numbers_of(const at::Tensor& tensor) {
  const at::NoGradGuard no_grad;
  Probe::Numbers out;
  out.shape = tensor.sizes().vec();
  if (tensor.numel() == 0 || !c10::isFloatingType(tensor.scalar_type())) {
    return out;
  }
  const at::Tensor x = tensor.detach().to(at::kFloat);
  out.nan = x.isnan().sum().item<std::int64_t>();
  out.infinite = x.isinf().sum().item<std::int64_t>();
  const at::Tensor finite = at::where(x.isfinite(), x, at::zeros({}, x.options()));
  out.largest = finite.abs().max().item<double>();
  out.rms = std::sqrt(finite.to(at::kDouble).square().mean().item<double>());
  return out;
}

/// Every module below that lets itself be observed, by its path.
void each_observable(const std::string& path, const std::shared_ptr<Module>& module,
                     const std::function<void(const std::string&, const std::shared_ptr<Module>&)>& visit) {
  if (module->observable() && !path.empty()) {
    visit(path, module);
  }
  for (const auto& [name, child] : module->children()) {
    each_observable(path.empty() || name.empty() ? path + name : path + "." + name, child, visit);
  }
}

const Probe::Seen* first_bad(const std::vector<Probe::Seen>& seen) {
  const auto found = std::find_if(seen.begin(), seen.end(), [](const Probe::Seen& one) { return !one.numbers.finite(); });
  return found == seen.end() ? nullptr : &*found;
}

std::string count_text(const Probe::Numbers& numbers) {
  std::int64_t all = 1;
  for (const std::int64_t size : numbers.shape) {
    all *= size;
  }
  return format("{} of {} numbers are not finite ({} NaN, {} infinite)", grouped(numbers.nan + numbers.infinite), grouped(all),
                grouped(numbers.nan), grouped(numbers.infinite));
}

std::string line(const std::string& name, const std::string& largest, const std::string& rms) {
  constexpr std::size_t kName = 46, kNumber = 12;
  const auto right = [&](const std::string& text) { return std::string(kNumber - std::min(kNumber, text.size()), ' ') + text; };
  return name + std::string(kName - std::min(kName, name.size()), ' ') + " " + right(largest) + " " + right(rms);
}

std::string four_digits(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3e", value);
  return text.data();
}

std::string table_of(const char* title, const std::vector<Probe::Seen>& seen) {
  std::string out = line(title, "largest", "rms") + "\n";
  for (const Probe::Seen& one : seen) {
    const Probe::Numbers& numbers = one.numbers;
    out += line("  " + one.name, four_digits(numbers.largest), four_digits(numbers.rms)) +
           (numbers.finite() ? "" : "   <- " + count_text(numbers)) + "\n";
  }
  return out + "\n";
}

}  // namespace

void Probe::join(Stepper::Callbacks& callbacks, Model& model) {
  digests_ = weight_digests(model);
  for (const ParameterPtr& parameter : model.parameters()) {
    if (const at::Tensor kept = parameter->kept(); kept.defined()) {
      weights_seen_.push_back({parameter->name, 0, numbers_of(kept)});
    }
  }
  for (const auto& [name, child] : model.children()) {
    each_observable(name, child, [&](const std::string& path, const std::shared_ptr<Module>& module) {
      observations_.push_back(std::make_unique<Observation>(module, [this, path](const at::Tensor& input, const at::Tensor& output) {
        const auto again = [&](const Seen& seen) { return seen.name == path && seen.micro == micro_; };  // recomputed in backward
        if (std::none_of(layers_.begin(), layers_.end(), again)) {
          layers_.push_back({path, micro_, numbers_of(output), !input.defined() || numbers_of(input).finite()});
        }
        return at::Tensor();
      }));
    });
  }
  callbacks.micro_end = [this, earlier = std::move(callbacks.micro_end)] {
    if (earlier) {
      earlier();
    }
    ++micro_;
  };
  callbacks.backward_end = [this, &model, earlier = std::move(callbacks.backward_end)](StepResult& result) {
    look_at_gradients(model, false);
    const bool changed = earlier && earlier(result);
    if (changed) {
      look_at_gradients(model, true);
    }
    return changed;
  };
}

void Probe::look_at_gradients(Model& model, bool behind_hook) {
  const bool before = first_bad(gradients_) != nullptr;
  gradients_.clear();
  for (const ParameterPtr& parameter : model.parameters()) {
    if (const at::Tensor gradient = parameter->gradient(); gradient.defined()) {
      gradients_.push_back({parameter->name, 0, numbers_of(gradient)});
    }
  }
  std::reverse(gradients_.begin(), gradients_.end());  // as backward comes by
  by_hook_ = behind_hook && !before && first_bad(gradients_) != nullptr;
}

void Probe::end(const StepResult& result) {
  observations_.clear();
  result_ = result;
  ended_ = true;
}

bool Probe::found() const {
  return first_bad(weights_seen_) != nullptr || first_bad(layers_) != nullptr || first_bad(gradients_) != nullptr ||
         !std::isfinite(result_.loss);
}

std::string Probe::verdict() const {
  if (const Seen* const weight = first_bad(weights_seen_)) {
    return format("before the step already, in the weight {}: {}", weight->name, count_text(weight->numbers));
  }
  if (const Seen* const layer = first_bad(layers_)) {
    return format("in the forward of micro-batch {}, in what {} gives: {}{}", layer->micro + 1, layer->name, count_text(layer->numbers),
                  layer->finite_input ? "; its input is finite" : "");
  }
  if (!std::isfinite(result_.loss)) {
    return "in the loss: what every layer gives is finite";
  }
  if (const Seen* const gradient = first_bad(gradients_)) {
    return format("in {}, in the gradient of {}: {}", by_hook_ ? "what a hook wrote" : "the backward", gradient->name,
                  count_text(gradient->numbers));
  }
  return {};
}

std::string Probe::report() const {
  const std::string where = verdict();
  return table_of("weights", weights_seen_) + table_of("what layers give, in the order of the forward", layers_) +
         table_of("gradients, in the order of the backward", gradients_) +
         format("loss {}, norm of all gradients {}\n", result_.loss, result_.grad_norm) +
         (where.empty() ? "every number of this step is finite\n" : "the first number that is not finite stands " + where + "\n");
}

}  // namespace kf
