#pragma once
// The numbers of a run for the charts of a page.

#include <cstddef>
#include <cstdint>

#include "report/page/json_writer.h"
#include "report/read/row_file.h"

namespace kf::report {

/// Adds "axes" and "series" to the object that `json` is in.
///
/// "series": {"loss": {"step": [...], "value": [...]}, "eval.loss": ...}. Of more than 2 * `buckets` rows those that `thinned` keeps:
/// nothing that a picture would show is lost; then also "mean_step" and "mean" of each of so many stretches, since a mean of smallest and
/// largest numbers is no mean. null is a number that is not finite.
///
/// "axes": {"step": [...], "tokens": [...], "seconds": [...]}: steps as tokens and as time of training, at some rows.
void write_series(JsonWriter& json, const RowFile& rows, std::size_t buckets);

/// Steps from one to another, both included.
struct Stretch {
  std::int64_t from = 0, to = 0;
};
/// Adds "series" alone, of the rows in `stretch`: what a chart shows that has zoomed in.
void write_series(JsonWriter& json, const RowFile& rows, std::size_t buckets, const Stretch& stretch);

}  // namespace kf::report
