#include "metrics/prometheus/prometheus.h"

#include <utility>

#include "config/plan/plan.h"
#include "core/error.h"
#include "core/log.h"
#include "metrics/tracker/numbers.h"

namespace kf {
namespace {

constexpr auto kBetweenTries = std::chrono::seconds(5);

}  // namespace

void PrometheusSink::begin(const RunInfo& run) {
  address_ = run.config.metrics.prometheus_address;
  port_ = static_cast<int>(run.config.metrics.prometheus_port);
  labels_ = {{"run", run.plan.name}, {"run_id", run.id}, {"rank", "0"}};
  publish();
  serve();
}

void PrometheusSink::serve() {
  tried_ = std::chrono::steady_clock::now();
  try {
    server_ = std::make_unique<MetricsServer>(address_, port_, [page = page_] {
      std::shared_ptr<const std::string> text;
      {
        const std::lock_guard lock(page->mutex);
        text = page->text;
      }
      return *text;
    });
    log::info("metrics for Prometheus at http://{}:{}/metrics", address_, port_);
    warned_ = false;
  } catch (const Error& e) {
    if (!std::exchange(warned_, true)) {
      log::warn("no metrics at http://{}:{}/metrics (metrics.prometheus_port): {}; the run goes on and tries it again", address_, port_,
                e.what());
    }
  }
}

void PrometheusSink::publish() {
  Values all = row_;
  all.insert(all.end(), eval_.begin(), eval_.end());
  auto text = std::make_shared<const std::string>(exposition(all, labels_));
  const std::lock_guard lock(page_->mutex);
  page_->text = std::move(text);
}

void PrometheusSink::row(const StepRow& row) {
  row_ = tracked_numbers(row);
  row_.emplace_back("step", static_cast<double>(row.step));
  publish();
  if (server_ != nullptr && MetricsServer::is_crowded()) {
    log::warn("no metrics at http://{}:{}/metrics any more: too many files are open in the process", address_, port_);
    server_.reset();
  } else if (server_ == nullptr && std::chrono::steady_clock::now() - tried_ > kBetweenTries) {
    serve();
  }
}

void PrometheusSink::eval(const EvalResult& result) {
  eval_ = tracked_numbers(result);
  publish();
}

void PrometheusSink::end(const RunResult& /*result*/) { server_.reset(); }

}  // namespace kf
