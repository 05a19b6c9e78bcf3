#include "sweep/chart.h"

#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "sweep/table.h"

namespace kf::sweep {
namespace {

constexpr std::size_t kWidth = 64;
constexpr std::size_t kHeight = 12;

double share(double value, double low, double high) { return high > low ? std::clamp((value - low) / (high - low), 0.0, 1.0) : 0.5; }

void set_x_range(Chart& chart) {
  const auto [least, most] =
      std::minmax_element(chart.points.begin(), chart.points.end(), [](const auto& a, const auto& b) { return a.x < b.x; });
  chart.x_low = least->x;
  chart.x_high = most->x;
  if (!chart.labels.empty()) {
    chart.x_low = -0.5;
    chart.x_high = static_cast<double>(chart.labels.size()) - 0.5;
  }
}

/// From the best value to three times the distance of the median, or to the worst where that is nearer.
void set_y_range(Chart& chart, bool maximise) {
  std::vector<double> losses;
  for (const Chart::Point& point : chart.points) {
    losses.push_back(maximise ? -point.y : point.y);
  }
  std::sort(losses.begin(), losses.end());
  const double limit = losses.front() + 3 * (losses[losses.size() / 2] - losses.front());
  double worst = losses.front();
  for (const double loss : losses) {
    worst = loss <= limit ? loss : worst;
  }
  chart.y_low = maximise ? -worst : losses.front();
  chart.y_high = maximise ? -losses.front() : worst;
}

Chart chart_of(const Parameter& first, const std::vector<Trial>& trials, const Trial* best) {
  Chart chart;
  chart.name = first.name;
  for (const Trial& trial : trials) {
    const Parameter* p = trial.parameter(first.name);
    if (p == nullptr || p->distribution.numeric() != first.distribution.numeric() || !trial.value || !std::isfinite(*trial.value)) {
      continue;
    }
    chart.log = chart.log || p->distribution.log;
    if (!p->distribution.numeric()) {
      for (std::size_t i = chart.labels.size(); i < p->distribution.choices.size(); ++i) {
        chart.labels.push_back(short_value(p->distribution.choices[i]));
      }
    }
    chart.points.push_back({p->stored, *trial.value, trial.state == TrialState::pruned, &trial == best, trial.number});
  }
  return chart;
}

/// A choice has a line for each possibility, with the objective across.
std::string strips(const Chart& chart, const std::string& objective) {
  std::size_t widest = 0;
  for (const std::string& label : chart.labels) {
    widest = std::max(widest, label.size());
  }
  std::string out = format("{} by {}\n", objective, chart.name);
  for (std::size_t i = 0; i < chart.labels.size(); ++i) {
    std::string line(kWidth, ' ');
    for (const Chart::Point& point : chart.points) {
      if (point.x == static_cast<double>(i)) {
        char& cell = line[static_cast<std::size_t>(std::lround(chart.up(point.y) * (kWidth - 1)))];
        if (point.best || cell == '*') {
          cell = '*';
        } else if (!point.pruned) {
          cell = 'o';
        } else if (cell == ' ') {
          cell = '.';
        }
      }
    }
    out += format("  {}{} |{}|\n", chart.labels[i], std::string(widest - chart.labels[i].size(), ' '), line);
  }
  const std::string low = short_number(chart.y_low);
  const std::string high = short_number(chart.y_high);
  return out + std::string(widest + 4, ' ') + low + std::string(kWidth - std::min(kWidth, low.size() + high.size()), ' ') + high + "\n";
}

char mark_of(const Chart::Point& point, const Chart& chart) {
  if (point.best) {
    return '*';
  }
  if (point.y > chart.y_high || point.y < chart.y_low) {
    return point.y > chart.y_high ? '^' : 'v';
  }
  return point.pruned ? '.' : 'o';
}

std::string scatter(const Chart& chart, const std::string& objective) {
  std::vector<std::string> grid(kHeight, std::string(kWidth, ' '));
  for (const Chart::Point& point : chart.points) {
    const auto column = static_cast<std::size_t>(std::lround(chart.across(point.x) * (kWidth - 1)));
    const auto row = kHeight - 1 - static_cast<std::size_t>(std::lround(chart.up(point.y) * (kHeight - 1)));
    char& cell = grid[row][column];
    const char mark = mark_of(point, chart);
    cell = cell == '*' || (mark == '.' && cell != ' ') ? cell : mark;
  }
  const std::string high = short_number(chart.y_high);
  const std::string low = short_number(chart.y_low);
  const std::size_t margin = std::max(high.size(), low.size());
  std::string out = format("{} against {}\n", objective, chart.name);
  for (std::size_t row = 0; row < kHeight; ++row) {
    const std::string label = row == 0 ? high : row + 1 == kHeight ? low : "";
    out += std::string(margin - label.size(), ' ') + label + " |" + grid[row] + "\n";
  }
  const std::string from = short_number(chart.x_low);
  const std::string to = short_number(chart.x_high) + (chart.log ? " (log)" : "");
  out += std::string(margin, ' ') + " +" + std::string(kWidth, '-') + "\n";
  return out + std::string(margin + 2, ' ') + from + std::string(kWidth - std::min(kWidth, from.size() + to.size()), ' ') + to + "\n";
}

}  // namespace

double Chart::across(double x) const { return log ? share(std::log(x), std::log(x_low), std::log(x_high)) : share(x, x_low, x_high); }

double Chart::up(double y) const { return share(y, y_low, y_high); }

std::vector<Chart> charts(const std::vector<Trial>& trials, bool maximise) {
  std::vector<Chart> out;
  const Trial* const best = best_of(trials, maximise);
  for (const Trial& trial : trials) {
    for (const Parameter& p : trial.parameters) {
      if (std::any_of(out.begin(), out.end(), [&p](const Chart& chart) { return chart.name == p.name; })) {
        continue;
      }
      Chart chart = chart_of(p, trials, best);
      if (!chart.points.empty()) {
        set_x_range(chart);
        set_y_range(chart, maximise);
        out.push_back(std::move(chart));
      }
    }
  }
  std::erase_if(out, [](const Chart& chart) { return chart.labels.size() < 2 && chart.x_low == chart.x_high; });
  std::erase_if(out, [](const Chart& chart) { return chart.labels.size() == 1; });
  return out;
}

std::string text_plot(const Chart& chart, const std::string& objective) {
  return chart.labels.empty() ? scatter(chart, objective) : strips(chart, objective);
}

}  // namespace kf::sweep
