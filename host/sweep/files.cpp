#include "sweep/files.h"

#include <algorithm>
#include <functional>

#include "config/tree/json.h"
#include "core/ascii.h"
#include "core/csv.h"
#include "core/text.h"
#include "sweep/chart.h"
#include "sweep/svg.h"

namespace kf::sweep {
namespace {

using config::Node;

void add_new(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    names.push_back(name);
  }
}

const config::Table* values_of(const Trial& trial) {
  const Node* node = trial.attributes.find("values");
  return node != nullptr ? node->table() : nullptr;
}

/// Settings whose value in some trial is not the drawn one.
std::vector<std::string> adjusted_keys(const std::vector<Trial>& trials) {
  std::vector<std::string> out;
  for (const Trial& trial : trials) {
    if (const config::Table* values = values_of(trial)) {
      for (const auto& [key, node] : *values) {
        const Parameter* p = trial.parameter(key);
        if (p == nullptr || (!(p->value() == node) && !node.array() && !node.table())) {
          add_new(out, key);
        }
      }
    }
  }
  return out;
}

/// A parameter's name as a file's: "optimizer.lr", "choice_1".
std::string file_name(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !is_alnum(c) && c != '.' && c != '-' && c != '_'; }, '_');
  return name + ".svg";
}

}  // namespace

std::string csv_text(const std::vector<Trial>& trials) {
  std::vector<std::string> names;
  for (const Trial& trial : trials) {
    for (const Parameter& p : trial.parameters) {
      add_new(names, p.name);
    }
  }
  const std::vector<std::string> adjusted = adjusted_keys(trials);
  std::vector<std::string> head{"number", "state", "value"};
  head.insert(head.end(), names.begin(), names.end());
  for (const std::string& key : adjusted) {
    head.push_back("used " + key);
  }
  for (const char* name : {"started", "seconds", "error"}) {
    head.emplace_back(name);
  }
  std::string out = csv_line(head);
  for (const Trial& trial : trials) {
    std::vector<std::string> cells{std::to_string(trial.number), std::string(state_name(trial.state)),
                                   trial.value ? to_text(*trial.value) : ""};
    for (const std::string& name : names) {
      const Parameter* p = trial.parameter(name);
      cells.push_back(p != nullptr ? config::to_cell(p->value()) : "");
    }
    for (const std::string& key : adjusted) {
      const config::Table* values = values_of(trial);
      const Node* node = values != nullptr ? values->find(key) : nullptr;
      cells.push_back(node != nullptr ? config::to_cell(*node) : "");
    }
    cells.push_back(trial.started);
    cells.push_back(trial.seconds() ? fixed(*trial.seconds(), 3) : "");
    cells.push_back(trial.text("error"));
    out += csv_line(cells);
  }
  return out;
}

std::vector<fs::path> write_plots(const fs::path& dir, const std::vector<Trial>& trials, bool maximise, const std::string& objective) {
  std::vector<fs::path> out;
  for (const Chart& chart : charts(trials, maximise)) {
    fs::create_directories(dir / "plots");
    out.push_back(dir / "plots" / file_name(chart.name));
    write_file_atomic(out.back(), to_svg(chart, objective));
  }
  return out;
}

}  // namespace kf::sweep
