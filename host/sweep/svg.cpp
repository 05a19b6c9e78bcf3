#include "sweep/svg.h"

#include <cmath>
#include <utility>
#include <vector>

#include "core/markup.h"
#include "core/text.h"
#include "sweep/table.h"

namespace kf::sweep {
namespace {

constexpr double kLeft = 90;
constexpr double kTop = 30;
constexpr double kWidth = 520;
constexpr double kHeight = 310;

std::string label(double x, double y, const std::string& anchor, const std::string& text) {
  return format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>\n", fixed(x, 1), fixed(y, 1), anchor, markup_escaped(text));
}

std::string line(double x1, double y1, double x2, double y2) {
  return format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>\n", fixed(x1, 1), fixed(y1, 1), fixed(x2, 1), fixed(y2, 1));
}

double place_x(const Chart& chart, double x) { return kLeft + chart.across(x) * kWidth; }
double place_y(const Chart& chart, double y) { return kTop + (1 - chart.up(y)) * kHeight; }

/// 1, 2 or 5 times a power of ten apart; of a logarithmic axis the powers of ten, or the ends where there is none between.
std::vector<double> ticks(double low, double high, bool log) {
  std::vector<double> out;
  if (log) {
    for (double power = std::pow(10, std::ceil(std::log10(low) - 1e-9)); power <= high * (1 + 1e-9); power *= 10) {
      out.push_back(power);
    }
    return out.size() >= 2 ? out : std::vector<double>{low, high};
  }
  if (high <= low) {
    return {low};
  }
  const double rough = (high - low) / 5;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double unit = 1;
  for (const auto& [from, wider] : {std::pair(1.5, 2.0), std::pair(3.5, 5.0), std::pair(7.5, 10.0)}) {
    unit = rough / power < from ? unit : wider;
  }
  for (double at = std::ceil(low / (unit * power)); at * unit * power <= high * (1 + 1e-12); ++at) {
    out.push_back(at * unit * power);
  }
  return out;
}

std::string axes(const Chart& chart, const std::string& objective) {
  std::string out = format("<g stroke=\"#999\">\n{}{}", line(kLeft, kTop, kLeft, kTop + kHeight),
                           line(kLeft, kTop + kHeight, kLeft + kWidth, kTop + kHeight));
  std::string texts;
  for (const double y : ticks(chart.y_low, chart.y_high, false)) {
    out += line(kLeft - 4, place_y(chart, y), kLeft, place_y(chart, y));
    texts += label(kLeft - 8, place_y(chart, y) + 4, "end", short_number(y));
  }
  if (chart.labels.empty()) {
    for (const double x : ticks(chart.x_low, chart.x_high, chart.log)) {
      out += line(place_x(chart, x), kTop + kHeight, place_x(chart, x), kTop + kHeight + 4);
      texts += label(place_x(chart, x), kTop + kHeight + 18, "middle", short_number(x));
    }
  } else {
    for (std::size_t i = 0; i < chart.labels.size(); ++i) {
      texts += label(place_x(chart, static_cast<double>(i)), kTop + kHeight + 18, "middle", chart.labels[i]);
    }
  }
  texts += label(kLeft + kWidth / 2, kTop + kHeight + 42, "middle", chart.name + (chart.log ? " (log)" : ""));
  texts += label(kLeft, kTop - 10, "start", objective);
  return out + "</g>\n" + texts;
}

std::string circle(const Chart& chart, const Chart::Point& point) {
  const char* const style = point.best     ? "r=\"6\" fill=\"#d62728\""
                            : point.pruned ? "r=\"4\" fill=\"none\" stroke=\"#888\""
                                           : "r=\"4\" fill=\"#1f77b4\" fill-opacity=\"0.75\"";
  return format("<circle cx=\"{}\" cy=\"{}\" {}><title>trial {}: {}</title></circle>\n", fixed(place_x(chart, point.x), 1),
                fixed(place_y(chart, point.y), 1), style, point.trial, short_number(point.y));
}

}  // namespace

std::string to_svg(const Chart& chart, const std::string& objective) {
  std::string out =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"640\" height=\"400\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"640\" height=\"400\" fill=\"white\"/>\n";
  out += axes(chart, objective);
  for (const Chart::Point& point : chart.points) {
    out += circle(chart, point);
  }
  return out + "</svg>\n";
}

}  // namespace kf::sweep
