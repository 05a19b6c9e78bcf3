#include "parity/job.h"

#include "config/load/load.h"
#include "core/error.h"

namespace kf::parity {

namespace {

bool plain_twins = false;  // of the whole run, see main.cpp

}  // namespace

void use_plain_twins() { plain_twins = true; }

config::Config job_of(const Table& sections, const Registries& registries) {
  config::Request request;
  request.recipe = Node(sections);
  request.files_must_exist = false;
  if (plain_twins) {
    request.overrides = {"--train.compile_model=false"};
  }
  config::Loaded loaded = config::load(request, registries.catalog());
  KF_CHECK(loaded.report.problems.empty(), Code::config, "{}", config::to_text(loaded.report));
  return std::move(loaded.config);
}

void put(Table& sections, const std::string& section, const std::string& key, Node value) {
  Node& node = sections[section];
  if (!node.table()) {
    node = Node(Table{});
  }
  (*node.table())[key] = std::move(value);
}

void put(Table& sections, const std::string& section, const Table& values) {
  for (const auto& [key, value] : values) {
    if (!value.is_null()) {
      put(sections, section, key, value);
    }
  }
}

std::unique_ptr<Loss> make_loss(const config::Config& config, const Registries& registries, const std::string& name) {
  return make_part(registries.loss, name, config, registries);
}

std::unique_ptr<Optimizer> make_optimizer(const config::Config& config, const Registries& registries, const ParameterList& parameters) {
  return make_part(registries.optimizer, config.optimizer.name, config, registries,
                   decay_groups(parameters, config.optimizer.weight_decay));
}

}  // namespace kf::parity
