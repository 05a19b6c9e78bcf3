// schedulers: the factor of every step.

#include "builtins/builtins.h"
#include "parity/areas.h"
#include "parity/job.h"

namespace kf::parity {

void run_schedulers(const Case& test, Comparison& out) {
  const Registries registries = native_registries();
  const std::int64_t max_steps = integer(test.at("max_steps"), "max_steps");
  Table scheduler = table(test.at("config"), "config");
  // The reference takes 0 for unset; our config refuses it, so the runner passes unset (README, 8).
  if (const Node* steps = get(scheduler, "decay_steps"); steps && integer(*steps, "decay_steps") == 0) {
    scheduler.erase("decay_steps");
  }
  Table sections;
  put(sections, "scheduler", scheduler);
  put(sections, "train", "max_steps", Node(max_steps));
  const config::Config config = job_of(sections, registries);
  const auto schedule = make_part(registries.scheduler, config.scheduler.name, config, registries, ScheduleSpan{max_steps});
  const std::vector<double> expected = numbers(test.at("factors"), "factors");
  std::vector<double> actual;
  for (std::size_t s = 0; s < expected.size(); ++s) {
    actual.push_back(schedule->factor(static_cast<std::int64_t>(s)));
  }
  out.numbers("factors", actual, expected, Tolerance{{{1e-12, 0}}});
}

}  // namespace kf::parity
