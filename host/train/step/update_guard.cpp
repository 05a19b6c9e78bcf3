#include "train/step/update_guard.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "core/text.h"

namespace kf {
namespace {

using config::Array;
using config::Node;
using config::Table;

Node to_node(const std::vector<double>& values) {
  Array out;
  for (const double value : values) {
    out.emplace_back(value);
  }
  return Node(std::move(out));
}

const Node& entry(const Node& state, const char* key) {
  const Node* const found = state.table() != nullptr ? state.table()->find(key) : nullptr;
  KF_CHECK(found != nullptr, Code::checkpoint, "the checkpoint's memory of recent updates lacks '{}'", key);
  return *found;
}

std::vector<double> numbers(const Node& state, const char* key) {
  std::vector<double> out;
  const Array* const list = entry(state, key).array();
  KF_CHECK(list != nullptr, Code::checkpoint, "the checkpoint's memory of recent updates: '{}' is no list", key);
  for (const Node& item : *list) {
    const double* const value = std::get_if<double>(&item.value);
    KF_CHECK(value != nullptr, Code::checkpoint, "the checkpoint's memory of recent updates: '{}' holds what is no number", key);
    out.push_back(*value);
  }
  return out;
}

std::int64_t integer(const Node& state, const char* key) {
  const auto* const value = std::get_if<std::int64_t>(&entry(state, key).value);
  KF_CHECK(value != nullptr, Code::checkpoint, "the checkpoint's memory of recent updates: '{}' is no integer", key);
  return *value;
}

}  // namespace

void RecentValues::add(double value) {
  values_.push_back(value);
  if (static_cast<std::int64_t>(values_.size()) > window_) {
    values_.erase(values_.begin(), values_.end() - window_);
  }
}

bool RecentValues::spikes(double value, double sigma) const {
  const auto count = static_cast<double>(values_.size());
  if (static_cast<std::int64_t>(values_.size()) < std::max<std::int64_t>(2, window_ / 2)) {
    return false;
  }
  const double mean = std::accumulate(values_.begin(), values_.end(), 0.0) / count;
  double variance = 0;
  for (const double v : values_) {
    variance += (v - mean) * (v - mean) / count;
  }
  return value > mean + sigma * std::max(std::sqrt(variance), 1e-6);
}

UpdateGuard::UpdateGuard(const config::TrainConfig& t)
    : spikes_(t.skip_spikes),
      sigma_(t.skip_sigma),
      max_consecutive_(t.skip_max_consecutive),
      abort_on_nan_(t.on_nan == "abort"),
      abort_on_inf_(t.on_inf == "abort"),
      losses_(t.skip_window),
      norms_(t.skip_window) {}

std::string UpdateGuard::fault_of(double loss, double norm, bool finite) {
  if (!finite) {
    return format("loss {} and gradient norm {} are not both finite", loss, norm);
  }
  if (!spikes_) {
    return {};
  }
  std::string out;
  if (losses_.spikes(loss, sigma_)) {
    out = format("loss {} is a spike", loss);
  } else if (norms_.spikes(norm, sigma_)) {
    out = format("gradient norm {} is a spike", norm);
  }
  losses_.add(loss);
  norms_.add(norm);
  return out.empty()
             ? out
             : out + format(": more than train.skip_sigma ({}) deviations above the last {} updates", sigma_, losses_.values().size() - 1);
}

std::string UpdateGuard::abort_of(double loss, double norm, std::int64_t step, bool infinite) const {
  const bool nan = abort_on_nan_ && (std::isnan(loss) || std::isnan(norm));
  const bool shown = std::isinf(loss) || std::isinf(norm);
  const bool by_inf = abort_on_inf_ && (shown || infinite);
  if (!nan && !by_inf) {
    return {};
  }
  return format(
      "step {}: loss {}, gradient norm {}{}; {} = \"abort\" ends the run here. Resume from the last checkpoint, with a lower "
      "optimizer.lr, or with \"skip\"",
      step + 1, loss, norm, by_inf && !shown ? " (a micro-batch's loss or a gradient is infinite, another NaN)" : "",
      by_inf ? "train.on_inf" : "train.on_nan");
}

UpdateGuard::Verdict UpdateGuard::judge(double loss, double norm, std::int64_t step, bool infinite) {
  const bool finite = std::isfinite(loss) && std::isfinite(norm);
  Verdict out{fault_of(loss, norm, finite), {}};
  skipped_ = out.skip.empty() ? 0 : skipped_ + 1;
  bad_ = finite ? 0 : bad_ + 1;
  out.abort = abort_of(loss, norm, step, infinite);
  if (!out.abort.empty()) {
    return out;
  }
  if (max_consecutive_ > 0 && skipped_ >= max_consecutive_) {
    out.abort = format(
        "{} updates in a row were skipped up to step {} (train.skip_max_consecutive = {}), the last because {}; resume from "
        "the last checkpoint with a lower optimizer.lr",
        skipped_, step + 1, max_consecutive_, out.skip);
  } else if (max_consecutive_ == 0 && bad_ >= kMaxBadSteps) {
    out.abort = format(
        "the loss or its gradient was not finite for {} steps in a row (up to step {}); resume from the last checkpoint with "
        "a lower optimizer.lr",
        kMaxBadSteps, step + 1);
  }
  return out;
}

Node UpdateGuard::state() const {
  Table out;
  out["losses"] = to_node(losses_.values());
  out["norms"] = to_node(norms_.values());
  out["skipped"] = Node(skipped_);
  out["bad"] = Node(bad_);
  return Node(std::move(out));
}

void UpdateGuard::load(const Node& state) {
  losses_.set(numbers(state, "losses"));
  norms_.set(numbers(state, "norms"));
  skipped_ = integer(state, "skipped");
  bad_ = integer(state, "bad");
}

}  // namespace kf
