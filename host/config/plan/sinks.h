#pragma once
// Where the numbers of a run go: the one list of sinks, in the end.

#include <cstdint>
#include <string>
#include <vector>

#include "config/schema/config.h"

namespace kf::config {

/// Names of registered sinks, each once: metrics.sinks in its order, behind the default's where it names none of those (a job that asks for
/// "csv" wants it besides), then what metrics.enable_wandb, enable_tensorboard and prometheus_port add.
std::vector<std::string> sink_list(const MetricsConfig& metrics);

/// Steps between histograms of weights and gradients: metrics.histogram_interval, or 0 where no sink of the list takes any.
std::int64_t histogram_interval(const MetricsConfig& metrics);

/// What is missing without the sinks of the default, a line each, for the log.
std::vector<std::string> missing_sinks(const std::vector<std::string>& sinks);

}  // namespace kf::config
