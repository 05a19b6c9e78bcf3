#include "parallel/worker_place.h"

#include <charconv>
#include <cstdlib>

#include "core/error.h"

namespace kf {
namespace {

constexpr const char* kWorker = "KF_WORKER";
constexpr const char* kWorkers = "KF_WORKERS";
constexpr const char* kPlace = "KF_WORKERS_PLACE";
constexpr const char* kHere = "KF_WORKERS_HERE";

std::int64_t number_of(const Variables& variable, const char* name) {
  const std::string text = variable(name);
  std::int64_t number = -1;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  KF_CHECK(error == std::errc() && stopped == end && number >= 0, Code::config, "{}={}: these variables are `kf-host --workers`'s own",
           name, text);
  return number;
}

}  // namespace

std::map<std::string, std::string> variables_of(const WorkerPlace& place) {
  return {{kWorker, to_text(place.worker)}, {kWorkers, to_text(place.workers)}, {kPlace, place.where}, {kHere, place.here ? "1" : "0"}};
}

std::optional<WorkerPlace> worker_place(const Variables& variable) {
  if (variable(kWorker).empty()) {
    return std::nullopt;
  }
  WorkerPlace out{variable(kPlace), number_of(variable, kWorker), number_of(variable, kWorkers), variable(kHere) == "1"};
  KF_CHECK(out.worker < out.workers && !out.where.empty(), Code::config,
           "worker {} of {} in '{}': these variables are `kf-host --workers`'s own", out.worker, out.workers, out.where);
  return out;
}

void hide_worker_place() {
  for (const char* const name : {kWorker, kWorkers, kPlace, kHere}) {
    ::unsetenv(name);
  }
}

std::vector<std::string> words_of(const WorkerPlace& place) {
  std::vector<std::string> out{"--workers", to_text(place.workers)};
  if (!place.here) {
    out.insert(out.end(), {"--worker", to_text(place.worker), "--meet", place.where});
  }
  return out;
}

}  // namespace kf
