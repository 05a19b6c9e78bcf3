#pragma once
// metrics.prometheus_port: the numbers of the last row and of the last evaluation, for Prometheus to fetch.

#include <chrono>
#include <memory>
#include <mutex>
#include <string>

#include "metrics/prometheus/exposition.h"
#include "metrics/prometheus/metrics_server.h"
#include "metrics/sink.h"

namespace kf {

/// The labels `run` (its name), `run_id` and `rank` stand at every number. A port that another program has does not keep a run from going
/// on: it is a warning, and is tried again.
class PrometheusSink final : public Sink {
 public:
  void begin(const RunInfo& run) override;
  void row(const StepRow& row) override;
  void eval(const EvalResult& result) override;
  void end(const RunResult& result) override;

 private:
  void serve();
  void publish();

  std::string address_;
  int port_ = 0;
  Labels labels_;
  Values row_;
  Values eval_;
  std::chrono::steady_clock::time_point tried_;
  bool warned_ = false;
  struct Page {
    std::mutex mutex;
    std::shared_ptr<const std::string> text = std::make_shared<const std::string>();
  };
  std::shared_ptr<Page> page_ = std::make_shared<Page>();  // a request may outlive the sink
  std::unique_ptr<MetricsServer> server_;
};

}  // namespace kf
