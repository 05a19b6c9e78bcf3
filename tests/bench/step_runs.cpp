#include "bench/step_runs.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <variant>

#include "config/tree/json.h"
#include "core/error.h"
#include "metrics/jsonl.h"

namespace kf::bench {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

fs::path libraries() { return fs::path(KF_SOURCE_DIR) / ".deps/transformers-oracle"; }

/// The most that a process has held so far; 0 where it is gone.
double peak_of(pid_t process) {
  std::ifstream lines("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("VmHWM:")) {
      return 1024.0 * std::atof(line.c_str() + 6);
    }
  }
  return 0;
}

test::Options options_in(const fs::path& folder, const std::map<std::string, std::string>& environment) {
  test::Options options;
  options.cwd = folder;
  options.env = environment;
  options.env["OMP_NUM_THREADS"] = std::to_string(at::get_num_threads());
  options.timeout = std::chrono::hours(2);
  return options;
}

/// What the rows of a run say.
Trained read_run(const fs::path& rows, double begin, const OwnSteps& steps) {
  Trained out;
  double tokens = 0;
  for (const auto& any : read_rows(rows)) {
    const StepRow& row = std::get<StepRow>(any);
    if (row.step == 1) {
      out.first = row.time - begin;
      tokens = static_cast<double>(row.tokens);
    }
    out.losses.push_back(row.loss);
    if (row.step > steps.warmup) {
      out.seconds.push_back(tokens / row.tokens_per_sec);
    }
  }
  return out;
}

std::map<std::string, std::string> with_torch(const fs::path& folder, std::map<std::string, std::string> environment) {
  environment.merge(peer_environment());
  environment["TORCHINDUCTOR_CACHE_DIR"] = (folder / "inductor").string();  // a start is a first start
  return environment;
}

std::vector<double> numbers_of(const config::Node& list) {
  std::vector<double> out;
  for (const config::Node& each : *list.array()) {
    out.push_back(std::get<double>(each.value));
  }
  return out;
}

}  // namespace

double median(std::vector<double> all) {
  KF_CHECK(!all.empty(), Code::other, "nothing was measured");
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::nth_element(all.begin(), middle, all.end());
  return *middle;
}

Trained run_own(const fs::path& folder, const OwnSteps& steps, const std::vector<std::string>& settings,
                const std::map<std::string, std::string>& environment) {
  std::vector<std::string> words{KF_HOST, "job.toml", "--run.fresh=true", "--train.max_steps=" + std::to_string(steps.warmup + steps.steps),
                                 "--metrics.log_interval=" + std::to_string(steps.interval)};
  words.insert(words.end(), settings.begin(), settings.end());
  fs::remove_all(folder / "runs");
  const double begin = now();
  test::Process process(words, options_in(folder, environment));
  std::atomic<bool> over{false};
  double memory = 0;
  std::thread watch([&, pid = process.pid()] {
    for (; !over; std::this_thread::sleep_for(std::chrono::milliseconds(5))) {
      memory = std::max(memory, peak_of(pid));
    }
  });
  const test::Finished done = process.wait();
  over = true;
  watch.join();
  KF_CHECK(done.status == 0, Code::other, "kf-host job.toml: {}{}", done.out, done.err);
  Trained out = read_run(folder / "runs/job/metrics.jsonl", begin, steps);
  out.memory = memory;
  return out;
}

Peer::Peer(const fs::path& folder, const std::string& form, const std::map<std::string, std::string>& environment)
    : begin_(now()), process_({"python3", std::string(KF_SOURCE_DIR) + "/tests/bench/torch_step.py", ".", "--form", form, "--serve"}, [&] {
        test::Options options = options_in(folder, with_torch(folder, environment));
        options.talks = true;
        return options;
      }()) {}

Trained Peer::steps(std::int64_t number) {
  process_.say(std::to_string(number) + "\n");
  const std::optional<std::string> line = process_.next_line();
  KF_CHECK(line, Code::other, "torch_step.py: {}", process_.wait().err);
  const config::Node told = config::parse_json(*line, "torch_step.py");
  const config::Table& table = *told.table();
  return {numbers_of(*table.find("losses")), numbers_of(*table.find("seconds")), std::get<double>(table.find("first")->value) - begin_,
          static_cast<double>(std::get<std::int64_t>(table.find("memory")->value))};
}

std::map<std::string, std::string> peer_environment() {
  return {{"PYTHONPATH", libraries().string()}, {"LD_LIBRARY_PATH", (libraries() / "stubs").string()}};
}

bool has_peer() { return fs::exists(libraries() / "stubs"); }

}  // namespace kf::bench
