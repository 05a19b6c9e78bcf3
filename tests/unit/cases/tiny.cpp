#include "tiny.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include "model/build.h"

namespace kf::cases {

config::Config tiny_config() {
  config::Config config;
  config.model.dim = 32;
  config.model.n_layers = 2;
  config.model.n_heads = 4;
  config.model.vocab_size = 97;
  config.model.max_seq_len = 64;
  config.train.mixed_precision = "fp32";
  config.train.seq_len = 32;
  config.train.compile_model = false;
  config.train.batch_size = 2;
  return config;
}

RowLoader::RowLoader(at::Tensor tokens, at::Tensor labels, std::int64_t batch_size)
    : tokens_(std::move(tokens)), labels_(std::move(labels)), batch_size_(batch_size) {}

Batch RowLoader::batch(std::int64_t index) {
  Batch out;
  const std::int64_t first = index % batches_per_epoch() * batch_size_;
  out.tokens = tokens_.narrow(0, first, batch_size_);
  out.labels = labels_.narrow(0, first, batch_size_);
  out.counted = out.labels.ne(kIgnore).sum().item<std::int64_t>();
  return out;
}

at::Tensor random_tokens(std::int64_t rows, std::int64_t length, std::uint64_t seed) {
  return at::randint(97, {rows, length}, at::detail::createCPUGenerator(seed), at::kLong);
}

Bench::Bench(config::Config given, at::ScalarType compute) : config(std::move(given)) {
  model = build_model(config, registries);
  materialize(*model, at::kCPU, compute, static_cast<std::uint64_t>(config.train.seed));
  const auto args = [&](const char* kind, const std::string& name) {
    return PartArgs{config, Registries::options_of(config, kind, name), registries};
  };
  const std::string& name = config.optimizer.name;
  optimizer =
      registries.optimizer.get(name).factory(args("optimizer", name), decay_groups(model->parameters(), config.optimizer.weight_decay));
  loss = registries.loss.get(config.train.loss_fn).factory(args("loss", config.train.loss_fn));
}

StepResult Bench::step(Loader& data, std::int64_t number, double lr, const std::function<void(const StepResult&)>& backward_end) {
  StepperOptions options;
  options.grad_accum_steps = config.train.grad_accum_steps;
  options.grad_clip_norm = config.train.grad_clip_norm;
  options.z_loss_weight = config.train.z_loss_weight;
  return Stepper(*model, *optimizer, *loss, options).run(data, number, lr, {{}, backward_end});
}

std::vector<at::Tensor> Bench::masters() const {
  std::vector<at::Tensor> out;
  for (const ParameterPtr& parameter : model->parameters()) {
    out.push_back(parameter->master.detach().clone());
  }
  return out;
}

ParameterPtr free_weight(const std::string& name, const at::Tensor& start, at::ScalarType type) {
  auto parameter = std::make_shared<Parameter>();
  parameter->name = name;
  parameter->shape = start.sizes().vec();
  parameter->role = start.dim() < 2 ? Role::vector : Role::hidden;
  parameter->master = start.clone();
  parameter->value = type == at::kFloat ? parameter->master : parameter->master.to(type);
  parameter->value.set_requires_grad(true);
  return parameter;
}

bool bitwise_equal(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  if (a.size() != b.size()) {
    return false;
  }
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!at::equal(a[i], b[i])) {
      return false;
    }
  }
  return true;
}

double relative_difference(const at::Tensor& a, const at::Tensor& b) { return ((a - b).abs().max() / b.abs().max()).item<double>(); }

}  // namespace kf::cases
