#include "app/sweep/sweep_folder.h"

#include <algorithm>

#include "core/error.h"
#include "core/plain_file.h"
#include "sweep/files.h"

namespace kf {

using config::Node;

std::unique_ptr<sweep::Store> open_sweep(const fs::path& dir) {
  const fs::path file = dir / "study.db";
  std::error_code ignored;
  KF_CHECK(fs::exists(file, ignored), Code::config, "{} is no sweep's folder: there is no {}", dir, file);
  auto store = std::make_unique<sweep::Store>(file, sweep::Database::Mode::existing);
  store->open_study();
  return store;
}

void write_sweep_files(const fs::path& dir, sweep::Store& store, const std::vector<sweep::Trial>& trials,
                       const std::function<std::string(const sweep::Trial&)>& best_toml) {
  write_file_atomic(dir / "trials.csv", sweep::csv_text(trials));
  const sweep::Trial* best = sweep::best_of(trials, store.maximise());
  if (best == nullptr) {
    return;
  }
  const Node written = store.attribute("best_written");
  const auto* number = std::get_if<std::int64_t>(&written.value);
  if (number == nullptr || *number != best->number || !path_exists(dir / "best.toml")) {
    write_file_atomic(dir / "best.toml", best_toml(*best));
    store.set_attribute("best_written", Node(best->number));
  }
}

Node trial_recipe(const sweep::Definition& definition, const sweep::Trial& trial) {
  Node recipe = definition.base;
  const Node* values = trial.attributes.find("values");
  KF_CHECK(values != nullptr && values->table() != nullptr, Code::data, "trial {} has no values: it is not one of kf-host's", trial.number);
  for (const auto& [key, node] : *values->table()) {
    Node value = node;
    value.origin = value.key_origin = definition.place;
    sweep::set_at(*recipe.table(), key, std::move(value));
  }
  return recipe;
}

std::vector<std::string> trial_overrides(const std::vector<std::string>& overrides) {
  std::vector<std::string> out;
  std::copy_if(overrides.begin(), overrides.end(), std::back_inserter(out), [](const std::string& word) {
    const std::string key = word.substr(0, word.find('='));
    return key != "--run.fresh" && key != "--run.name" && key != "--run.dir";
  });
  return out;
}

}  // namespace kf
