#include "sweep/trial.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <utility>

#include "core/error.h"

namespace kf::sweep {
namespace {

constexpr std::array<std::pair<TrialState, std::string_view>, 5> kStates{{{TrialState::running, "RUNNING"},
                                                                          {TrialState::complete, "COMPLETE"},
                                                                          {TrialState::pruned, "PRUNED"},
                                                                          {TrialState::fail, "FAIL"},
                                                                          {TrialState::waiting, "WAITING"}}};

/// Seconds since 1970 of "2026-01-31 12:00:00.000000" in UTC.
std::optional<double> seconds_of(const std::string& text) {
  std::tm time{};
  int read = 0;
  if (std::sscanf(text.c_str(), "%d-%d-%d %d:%d:%n", &time.tm_year, &time.tm_mon, &time.tm_mday, &time.tm_hour, &time.tm_min, &read) != 5 ||
      read == 0) {
    return std::nullopt;
  }
  double second = 0;  // not scanf, whose point a script's locale may change
  if (std::from_chars(text.data() + read, text.data() + text.size(), second).ec != std::errc()) {
    return std::nullopt;
  }
  time.tm_year -= 1900;
  time.tm_mon -= 1;
  return static_cast<double>(::timegm(&time)) + second;
}

}  // namespace

std::string_view state_name(TrialState state) {
  return std::find_if(kStates.begin(), kStates.end(), [state](const auto& pair) { return pair.first == state; })->second;
}

TrialState state_of(std::string_view name) {
  for (const auto& [state, word] : kStates) {
    if (word == name) {
      return state;
    }
  }
  fail(Code::data, "'{}' is no state of a trial", name);
}

const Parameter* Trial::parameter(std::string_view name) const {
  const auto found = std::find_if(parameters.begin(), parameters.end(), [name](const Parameter& p) { return p.name == name; });
  return found == parameters.end() ? nullptr : &*found;
}

std::string Trial::text(std::string_view attribute) const {
  const config::Node* node = attributes.find(attribute);
  const auto* found = node != nullptr ? std::get_if<std::string>(&node->value) : nullptr;
  return found != nullptr ? *found : "";
}

std::optional<double> Trial::seconds() const {
  const auto begin = seconds_of(started);
  const auto end = seconds_of(completed);
  return begin && end ? std::optional(*end - *begin) : std::nullopt;
}

const Trial* best_of(const std::vector<Trial>& trials, bool maximise) {
  const Trial* best = nullptr;
  for (const Trial& trial : trials) {
    if (trial.state == TrialState::complete && trial.value) {
      if (best == nullptr || (maximise ? *trial.value > *best->value : *trial.value < *best->value)) {
        best = &trial;
      }
    }
  }
  return best;
}

std::int64_t count_of(const std::vector<Trial>& trials, TrialState state) {
  return std::count_if(trials.begin(), trials.end(), [state](const Trial& trial) { return trial.state == state; });
}

}  // namespace kf::sweep
