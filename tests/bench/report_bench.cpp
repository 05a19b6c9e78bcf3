#include "bench/report_bench.h"

#include <cmath>
#include <cstdio>
#include <string>

#include "bench/compare.h"
#include "core/fs.h"
#include "report/page/report.h"
#include "report/read/row_file.h"
#include "support/temp_dir.h"

namespace kf::bench {
namespace {

constexpr int kRows = 1'000'000;

/// Rows as a run of one process writes them.
std::string rows() {
  std::string out;
  for (int step = 1; step <= kRows; ++step) {
    const double loss = 2 + 5 * std::exp(-step / 1e5) + 0.1 * std::sin(step * 12.9898);
    char row[400];
    const int size =
        std::snprintf(row, sizeof row,
                      "{\"step\":%d,\"loss\":%.16g,\"grad_norm\":%.16g,\"lr\":%.16g,\"tokens\":%lld,\"tokens_per_sec\":%.16g,\"mfu\":%.16g,"
                      "\"memory_bytes\":%d,\"seconds\":%.16g,\"time\":%.16g,\"skipped\":0,\"ce\":%.16g,\"z_loss\":0.0,\"aux_loss\":0.0}\n",
                      step, loss, 1 + loss / 7, 3e-4 * (1 - step / 2e6), 16384LL * step, 52000 + 900 * std::sin(step * 1.7), 0.41, 1 << 30,
                      step * 0.31, 1.79e9 + step * 0.31, loss);
    out.append(row, static_cast<std::size_t>(size));
  }
  return out;
}

}  // namespace

void bench_report() {
  const test::TempDir dir;
  dir.write("run/metrics.jsonl", rows());
  dir.write("run/run.json", R"({"id": "a", "name": "run", "starts": []})");
  dir.write("run/job.toml", "");
  const fs::path run = dir / "run";
  compare("report of 1e6 rows", {"the page", [&] { report::report_html(report::plan_report({run.string()})); }},
          {"its rows read", [&] { report::RowFile(run / "metrics.jsonl").read(); }}, 4);
  compare("rows", {"read as columns", [&] { report::RowFile(run / "metrics.jsonl").read(); }},
          {"read as bytes", [&] { read_file(run / "metrics.jsonl"); }}, 4);
}

}  // namespace kf::bench
