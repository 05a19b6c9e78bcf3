#include "metrics/tracker/step_record.h"

#include <functional>
#include <numeric>

#include "core/error.h"

namespace kf {

using config::Array;
using config::Node;

std::size_t bytes_of(const std::deque<StepRecord>& records) {
  return std::transform_reduce(records.begin(), records.end(), std::size_t{0}, std::plus<>(),
                               [](const StepRecord& record) { return record.bytes.size(); });
}

Node to_state(const std::deque<StepRecord>& waiting) {
  Array out;
  for (const StepRecord& record : waiting) {
    out.emplace_back(Array{Node(record.step), Node(record.bytes)});
  }
  return out.empty() ? Node() : Node(std::move(out));
}

std::deque<StepRecord> records_of(const Node& state, const std::string& path) {
  KF_CHECK(state.array() != nullptr, Code::checkpoint, "the checkpoint's records for {} are no list", path);
  std::deque<StepRecord> out;
  for (const Node& node : *state.array()) {
    const Array* const pair = node.array();
    const auto* const step = pair != nullptr && pair->size() == 2 ? std::get_if<std::int64_t>(&pair->front().value) : nullptr;
    const auto* const bytes = step != nullptr ? std::get_if<std::string>(&pair->back().value) : nullptr;
    KF_CHECK(bytes != nullptr, Code::checkpoint, "the checkpoint has a record for {} that is no pair of step and bytes", path);
    out.push_back({*step, *bytes});
  }
  return out;
}

}  // namespace kf
