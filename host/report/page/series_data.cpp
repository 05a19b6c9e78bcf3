#include "report/page/series_data.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "report/read/thinned.h"

namespace kf::report {
namespace {

constexpr std::size_t kAxisPoints = 512;

/// Means over stretches of rows.
class Means {
 public:
  Means(std::span<const double> x, std::span<const double> y, std::size_t buckets) {
    const std::size_t stretch = std::max<std::size_t>(1, (y.size() + buckets - 1) / buckets);
    for (std::size_t from = 0; from < y.size(); from += stretch) {
      add(x.subspan(from, std::min(stretch, y.size() - from)), y.subspan(from, std::min(stretch, y.size() - from)));
    }
  }
  const std::vector<double>& steps() const { return steps_; }
  const std::vector<double>& means() const { return means_; }

 private:
  void add(std::span<const double> x, std::span<const double> y) {
    double sum_x = 0;
    double sum_y = 0;
    double count = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
      const bool counts = std::isfinite(y[i]);  // gaps are NaN, too
      sum_x += counts ? x[i] : 0;
      sum_y += counts ? y[i] : 0;
      count += counts ? 1 : 0;
    }
    if (count > 0) {
      steps_.push_back(std::round(sum_x / count));
      means_.push_back(sum_y / count);
    }
  }

  std::vector<double> steps_, means_;
};

void write_column(JsonWriter& json, std::span<const double> x, std::span<const double> y, std::size_t buckets) {
  const std::vector<std::size_t> kept = thinned(x, y, buckets);
  json.begin_object().key("step").begin_array();
  for (const std::size_t i : kept) {
    json.value(static_cast<std::int64_t>(x[i]));
  }
  json.end_array().key("value").begin_array();
  for (const std::size_t i : kept) {
    json.value(y[i]);
  }
  json.end_array();
  const auto there = std::count_if(y.begin(), y.end(), [](double value) { return !is_gap(value); });
  if (static_cast<std::size_t>(there) > kept.size()) {
    const Means means(x, y, buckets);
    json.list("mean_step", means.steps()).list("mean", means.means());
  }
  json.end_object();
}

void write_columns(JsonWriter& json, const Columns& columns, std::string_view prefix, std::size_t buckets, const Stretch& stretch) {
  const auto first = std::lower_bound(columns.steps.begin(), columns.steps.end(), stretch.from);
  const auto last = std::upper_bound(first, columns.steps.end(), stretch.to);
  const std::vector<double> x(first, last);
  const auto begin = static_cast<std::size_t>(first - columns.steps.begin());
  for (const Column& column : columns.columns) {
    json.key(std::string(prefix) + column.name);
    write_column(json, x, std::span(column.values).subspan(begin, x.size()), buckets);
  }
}

void write_axes(JsonWriter& json, const Columns& columns) {
  const Column* const tokens = columns.find("tokens");
  const Column* const seconds = columns.find("seconds");
  const auto known = [](const Column* column, std::size_t row) { return column != nullptr && std::isfinite(column->values[row]); };
  const std::size_t stride = std::max<std::size_t>(1, columns.rows() / kAxisPoints);
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < columns.rows(); ++row) {
    const bool wanted = row % stride == 0 || row + 1 == columns.rows();
    if (wanted && known(tokens, row) && known(seconds, row)) {
      rows.push_back(row);
    }
  }
  json.key("axes").begin_object();
  const auto write = [&](std::string_view name, const auto& of) {
    json.key(name).begin_array();
    for (const std::size_t row : rows) {
      json.value(of(row));
    }
    json.end_array();
  };
  write("step", [&](std::size_t row) { return columns.steps[row]; });
  write("tokens", [&](std::size_t row) { return tokens->values[row]; });
  write("seconds", [&](std::size_t row) { return seconds->values[row]; });
  json.end_object();
}

}  // namespace

void write_series(JsonWriter& json, const RowFile& rows, std::size_t buckets, const Stretch& stretch) {
  json.key("series").begin_object();
  write_columns(json, rows.steps(), "", buckets, stretch);
  write_columns(json, rows.evals(), "eval.", buckets, stretch);
  json.end_object();
}

void write_series(JsonWriter& json, const RowFile& rows, std::size_t buckets) {
  write_axes(json, rows.steps());
  write_series(json, rows, buckets, {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()});
}

}  // namespace kf::report
