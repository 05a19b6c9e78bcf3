#pragma once
// Prometheus' text format (prometheus.io/docs/instrumenting/exposition_formats, version 0.0.4).

#include <string>
#include <utility>
#include <vector>

#include "metrics/row.h"

namespace kf {

using Labels = std::vector<std::pair<std::string, std::string>>;

/// Every value as a gauge "kf_NAME" with these labels. What a name may not have becomes '_'; such a number has its own name in the label
/// `metric`, so that two of them never are the same.
std::string exposition(const Values& values, const Labels& labels);

}  // namespace kf
