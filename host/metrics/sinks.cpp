#include "metrics/sinks.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "core/error.h"
#include "core/log.h"

namespace kf {

void Sinks::add(std::string name, std::unique_ptr<Sink> sink) { all_.push_back({std::move(name), std::move(sink)}); }

void Sinks::begin(const RunInfo& run) {
  for (const Named& one : all_) {
    one.sink->begin(run);
  }
}

void Sinks::row(const StepRow& row) {
  for (const Named& one : all_) {
    one.sink->row(row);
  }
}

void Sinks::eval(const EvalResult& result) {
  for (const Named& one : all_) {
    one.sink->eval(result);
  }
}

void Sinks::text(const TextSample& sample) {
  for (const Named& one : all_) {
    one.sink->text(sample);
  }
}

void Sinks::histograms(const Histograms& all) {
  for (const Named& one : all_) {
    one.sink->histograms(all);
  }
}

void Sinks::before_save() {
  for (const Named& one : all_) {
    one.sink->before_save();
  }
}

void Sinks::saved(std::int64_t step, const fs::path& checkpoint) {
  for (const Named& one : all_) {
    one.sink->saved(step, checkpoint);
  }
}

void Sinks::rewind(std::int64_t step) {
  for (const Named& one : all_) {
    one.sink->rewind(step);
  }
}

void Sinks::step_over(std::int64_t step) {
  for (const Named& one : all_) {
    one.sink->step_over(step);
  }
}

void Sinks::end(const RunResult& result) {
  std::exception_ptr first;
  for (const Named& one : all_) {
    try {
      one.sink->end(result);
    } catch (const std::exception& e) {
      if (first != nullptr) {
        log::error("at the end of the sink {}: {}", one.name, e.what());
      } else {
        first = std::current_exception();
      }
    }
  }
  if (first != nullptr) {
    std::rethrow_exception(first);
  }
}

std::string Sinks::fault() const {
  for (const Named& one : all_) {
    if (std::string fault = one.sink->fault(); !fault.empty()) {
      return fault;
    }
  }
  return {};
}

config::Node Sinks::state() {
  config::Table states;
  for (const Named& one : all_) {
    if (config::Node state = one.sink->state(); !state.is_null()) {
      states[one.name] = std::move(state);
    }
  }
  return states.empty() ? config::Node() : config::Node(std::move(states));
}

void Sinks::load(const config::Node& states) {
  if (states.is_null()) {
    return;
  }
  KF_CHECK(states.table() != nullptr, Code::checkpoint, "the states of sinks in the checkpoint are no table");
  for (const auto& [name, state] : *states.table()) {
    const auto found = std::find_if(all_.begin(), all_.end(), [&wanted = name](const Named& one) { return one.name == wanted; });
    if (found != all_.end()) {
      found->sink->load(state);
    } else {
      log::warn("the checkpoint holds the state of the sink {}, which this job does not have", name);
    }
  }
}

}  // namespace kf
