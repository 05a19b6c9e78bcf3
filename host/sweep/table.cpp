#include "sweep/table.h"

#include <algorithm>
#include <ostream>

#include "config/tree/json.h"
#include "core/decimal.h"
#include "core/text.h"

namespace kf::sweep {
namespace {

using Cells = std::vector<std::string>;

int rank(TrialState state) {
  switch (state) {
    case TrialState::complete: return 0;
    case TrialState::pruned: return 1;
    case TrialState::running: return 2;
    case TrialState::waiting: return 3;
    case TrialState::fail: return 4;
  }
  return 5;
}

std::vector<const Trial*> ordered(const std::vector<Trial>& trials, bool maximise) {
  std::vector<const Trial*> out;
  for (const Trial& trial : trials) {
    out.push_back(&trial);
  }
  std::stable_sort(out.begin(), out.end(), [maximise](const Trial* a, const Trial* b) {
    if (rank(a->state) != rank(b->state) || !a->value || !b->value) {
      return rank(a->state) < rank(b->state);
    }
    return maximise ? *a->value > *b->value : *a->value < *b->value;
  });
  return out;
}

std::vector<std::string> parameter_names(const std::vector<Trial>& trials) {
  std::vector<std::string> names;
  for (const Trial& trial : trials) {
    for (const Parameter& p : trial.parameters) {
      if (std::find(names.begin(), names.end(), p.name) == names.end()) {
        names.push_back(p.name);
      }
    }
  }
  return names;
}

std::string value_cell(const Trial& trial) {
  if (trial.value) {
    return short_number(*trial.value);
  }
  return trial.reports.empty() ? "-" : short_number(trial.reports.rbegin()->second);
}

Cells cells_of(const Trial& trial, const std::vector<std::string>& names) {
  Cells cells{std::to_string(trial.number), lower(state_name(trial.state)), value_cell(trial),
              trial.reports.empty() ? "-" : std::to_string(trial.reports.rbegin()->first)};
  for (const std::string& name : names) {
    const Parameter* p = trial.parameter(name);
    cells.push_back(p != nullptr ? short_value(p->value()) : "-");
  }
  cells.push_back(trial.text("error"));
  return cells;
}

std::vector<std::string> aligned(const std::vector<Cells>& rows) {
  std::vector<std::size_t> widths;
  for (const Cells& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::vector<std::string> lines;
  for (const Cells& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - row[i].size(), ' ');
      const bool left = i == 1 || i + 1 == row.size();  // words; everything else stands to the right, as numbers do
      line += (i > 0 ? "  " : "") + (left ? row[i] + space : space + row[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<std::string> table_lines(const std::vector<Trial>& all, const std::vector<const Trial*>& shown) {
  const std::vector<std::string> names = parameter_names(all);
  Cells head{"trial", "state", "value", "step"};
  head.insert(head.end(), names.begin(), names.end());
  std::vector<Cells> rows{head};
  for (const Trial* trial : shown) {
    rows.push_back(cells_of(*trial, names));
  }
  return aligned(rows);
}

std::string plain_line(const Trial& trial) {
  std::string line = format("trial {}: {}", trial.number, lower(state_name(trial.state)));
  if (trial.value) {
    line += " " + short_number(*trial.value);
  }
  if (trial.state == TrialState::pruned && !trial.reports.empty()) {
    line += format(" at step {}", trial.reports.rbegin()->first);
  }
  for (const Parameter& p : trial.parameters) {
    line += format("  {}={}", p.name, short_value(p.value()));
  }
  const std::string error = trial.text("error");
  return error.empty() ? line : line + "  (" + error + ")";
}

}  // namespace

std::string short_number(double value) { return general(value, 6); }

std::string short_value(const config::Node& value) {
  if (const auto* real = std::get_if<double>(&value.value)) {
    return short_number(*real);
  }
  const auto* text = std::get_if<std::string>(&value.value);
  return text != nullptr ? *text : config::to_json(value);
}

std::string summary(const std::vector<Trial>& trials) {
  std::vector<std::string> parts;
  const auto add = [&](TrialState state, const char* word) {
    if (const std::int64_t count = count_of(trials, state); count > 0) {
      parts.push_back(format("{} {}", count, word));
    }
  };
  add(TrialState::complete, "complete");
  add(TrialState::pruned, "pruned");
  add(TrialState::fail, "failed");
  add(TrialState::running, "running");
  add(TrialState::waiting, "waiting");
  return format("{} trial{}{}{}", trials.size(), trials.size() == 1 ? "" : "s", parts.empty() ? "" : ": ", join(parts, ", "));
}

std::string trials_table(const std::vector<Trial>& trials, bool maximise, std::size_t rows) {
  std::vector<const Trial*> shown = ordered(trials, maximise);
  const std::size_t left_out = rows > 0 && shown.size() > rows ? shown.size() - rows : 0;
  shown.resize(shown.size() - left_out);
  std::string out = join(table_lines(trials, shown), "\n") + "\n";
  return left_out == 0 ? out : out + format("... and {} more\n", left_out);
}

LiveView::LiveView(std::ostream& out, bool maximise, int columns) : out_(out), maximise_(maximise), columns_(columns) {}

void LiveView::update(const std::vector<Trial>& trials) {
  if (columns_ > 0) {
    redraw(trials);
  } else {
    print_new(trials);
  }
  first_ = false;
}

void LiveView::print_new(const std::vector<Trial>& trials) {
  said_.resize(std::max(said_.size(), trials.size()));
  for (const Trial& trial : trials) {
    const auto number = static_cast<std::size_t>(trial.number);
    if (trial.finished() && !said_[number]) {
      said_[number] = true;
      if (!first_) {  // what earlier workers did is in the summary
        out_ << plain_line(trial) << '\n';
      }
    }
  }
  out_ << std::flush;
}

void LiveView::redraw(const std::vector<Trial>& trials) {
  constexpr std::size_t kBest = 8;
  std::vector<const Trial*> shown;
  for (const Trial* trial : ordered(trials, maximise_)) {
    if (trial->state == TrialState::complete && shown.size() < kBest) {
      shown.push_back(trial);
    }
  }
  for (const Trial& trial : trials) {
    if (trial.state == TrialState::running) {
      shown.push_back(&trial);
    }
  }
  std::vector<std::string> lines{summary(trials)};
  for (std::string& line : table_lines(trials, shown)) {
    lines.push_back(std::move(line));
  }
  if (drawn_ > 0) {
    out_ << "\x1b[" << drawn_ << "A";
  }
  for (const std::string& line : lines) {
    out_ << "\x1b[2K" << line.substr(0, static_cast<std::size_t>(columns_)) << '\n';
  }
  for (std::size_t i = lines.size(); i < drawn_; ++i) {
    out_ << "\x1b[2K\n";
  }
  drawn_ = std::max(drawn_, lines.size());
  out_ << std::flush;
}

}  // namespace kf::sweep
