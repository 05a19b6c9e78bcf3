#include "report/terminal/plot.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/decimal.h"
#include "core/text.h"
#include "report/read/columns.h"
#include "report/read/thinned.h"
#include "report/terminal/canvas.h"
#include "report/terminal/ticks.h"

namespace kf::report {
namespace {

constexpr Color kColors[] = {Color::cyan, Color::yellow, Color::green, Color::magenta, Color::blue, Color::red};
constexpr std::string_view kMarks = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// The points of a series that can be drawn, and how many cannot.
struct Points {
  std::vector<double> x, y;
  std::size_t not_finite = 0, not_positive = 0;
  double first_not_finite = 0;  // its x
};

Points points_of(const PlotSeries& series, const PlotOptions& options) {
  Points out;
  for (std::size_t i = 0; i < series.y.size(); ++i) {
    const double x = series.x[i], y = series.y[i];
    if (is_gap(y)) {
      continue;
    }
    if (!std::isfinite(y)) {
      out.first_not_finite = out.not_finite++ == 0 ? x : out.first_not_finite;
    } else if ((options.log_x && x <= 0) || (options.log_y && y <= 0)) {
      ++out.not_positive;
    } else {
      out.x.push_back(x);
      out.y.push_back(y);
    }
  }
  return out;
}

Axis axis_over(const std::vector<Points>& all, const std::vector<double> Points::*values, bool log) {
  Axis out{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(), log};
  for (const Points& points : all) {
    for (const double value : points.*values) {
      out.low = std::min(out.low, value);
      out.high = std::max(out.high, value);
    }
  }
  return out;
}

std::size_t place(double share, std::size_t dots) {
  return static_cast<std::size_t>(std::lround(std::clamp(share, 0.0, 1.0) * static_cast<double>(dots - 1)));
}

/// Labels of rows: the text of a tick stands beside the row that it falls into.
std::vector<std::string> row_labels(const Axis& axis, std::size_t rows) {
  std::vector<std::string> out(rows);
  const std::vector<double> values = ticks(axis, std::max<std::size_t>(2, rows / 4));
  const std::vector<std::string> texts = tick_texts(values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    out[rows - 1 - place(axis.share(values[i]), rows)] = texts[i];
  }
  return out;
}

/// The line below the canvas, and the one with the numbers.
std::string x_axis(const Axis& axis, std::size_t columns, std::size_t indent) {
  std::string line;
  std::string numbers(columns + 1, ' ');
  std::vector<bool> marked(columns, false);
  const std::vector<double> values = ticks(axis, std::max<std::size_t>(1, columns / 12));
  const std::vector<std::string> texts = tick_texts(values);
  std::size_t free = 0;  // from where on nothing stands yet
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t at = place(axis.share(values[i]), columns);
    marked[at] = true;
    const std::size_t begin =
        std::min(at > texts[i].size() / 2 ? at - texts[i].size() / 2 : 0, columns + 1 - std::min(columns + 1, texts[i].size()));
    if (begin >= free && texts[i].size() <= columns) {
      numbers.replace(begin, texts[i].size(), texts[i]);
      free = begin + texts[i].size() + 1;
    }
  }
  for (const bool mark : marked) {
    line += mark ? "┬" : "─";
  }
  numbers.resize(numbers.find_last_not_of(' ') + 1);
  return std::string(indent, ' ') + "└" + line + '\n' + std::string(indent + 1, ' ') + numbers + '\n';
}

void draw(Canvas& canvas, const Points& points, const Axis& across, const Axis& up, char mark, Color color) {
  std::vector<double> shares;
  shares.reserve(points.x.size());
  for (const double x : points.x) {
    shares.push_back(across.share(x));
  }
  std::size_t before_x = 0, before_y = 0;
  bool first = true;
  for (const std::size_t i : thinned(shares, points.y, canvas.width())) {
    const std::size_t x = place(shares[i], canvas.width());
    const std::size_t y = canvas.height() - 1 - place(up.share(points.y[i]), canvas.height());
    canvas.line(first ? x : before_x, first ? y : before_y, x, y, mark, color);
    before_x = x;
    before_y = y;
    first = false;
  }
}

std::string legend(const PlotSeries& series, const Points& points, const PlotOptions& options, const std::string& mark) {
  std::string out = points.y.empty() ? "nothing to draw" : format("last {}", general(points.y.back(), 5));
  if (points.not_finite > 0) {
    out += format(", {} nan or infinite (first at {} {})", points.not_finite, options.x_name, general(points.first_not_finite, 7));
  }
  if (points.not_positive > 0) {
    out += format(", {} not above 0", points.not_positive);
  }
  // The mark may have a colour, which takes no column.
  return mark + fitted(format("  {}  {}", series.name, out), options.columns, 2).substr(1) + '\n';
}

}  // namespace

std::string plot(const std::vector<PlotSeries>& series, const PlotOptions& options) {
  std::vector<Points> all;
  for (const PlotSeries& one : series) {
    all.push_back(points_of(one, options));
  }
  const bool braille = options.color || series.size() == 1;
  const auto mark = [](std::size_t i) { return kMarks[i % kMarks.size()]; };
  const auto color = [](std::size_t i) { return kColors[i % std::size(kColors)]; };
  std::string out;
  if (std::any_of(all.begin(), all.end(), [](const Points& points) { return !points.x.empty(); })) {
    const Axis across = axis_over(all, &Points::x, options.log_x), up = axis_over(all, &Points::y, options.log_y);
    const std::vector<std::string> labels = row_labels(up, options.rows);
    const std::size_t indent =
        std::max_element(labels.begin(), labels.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); })->size();
    Canvas canvas(options.columns - std::min(options.columns - 8, indent + 2), options.rows, braille);
    for (std::size_t i = 0; i < all.size(); ++i) {
      draw(canvas, all[i], across, up, mark(i), color(i));
    }
    for (std::size_t row = 0; row < options.rows; ++row) {
      out += std::string(indent - labels[row].size(), ' ') + labels[row] + (labels[row].empty() ? "│" : "┤") +
             canvas.row(row, options.color) + '\n';
    }
    out += x_axis(across, canvas.width() / (braille ? 2 : 1), indent);
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string sign = braille ? colored("⠒", options.color ? color(i) : Color::none) : std::string(1, mark(i));
    out += legend(series[i], all[i], options, sign);
  }
  return out;
}

}  // namespace kf::report
