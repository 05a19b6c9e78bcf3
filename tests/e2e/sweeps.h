#pragma once
// Scripts that return sweeps of toys, and what a test wants to know of their trials.

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "e2e/toy.h"
#include "sweep/store.h"

#include <catch2/catch.hpp>

namespace kf::test {

/// A sweep of toy runs; `rest` are further keys.
inline std::string sweep_script(const std::string& rest,
                                const std::string& base = "train = { max_steps = 4 }, eval = { interval = 2, steps = 1 }") {
  return "local kf = require('kf')\nreturn kf.sweep({\n  base = { extends = 'toy.toml', " + base + " },\n  " + rest + "\n})\n";
}

inline std::vector<sweep::Trial> trials_of(const Toy& toy, const std::string& name) {
  sweep::Store store(toy / "runs" / name / "study.db", sweep::Database::Mode::existing);
  store.open_study();
  return store.trials();
}

inline Options in_folder(const Toy& toy) {
  Options options;
  options.cwd = toy.folder();
  return options;
}

inline std::int64_t in_state(const std::vector<sweep::Trial>& trials, sweep::TrialState state) { return sweep::count_of(trials, state); }

/// Waits until `wanted` is true of the trials; the process under test moves them on.
template <class F>
std::vector<sweep::Trial> wait_until(const Toy& toy, const std::string& name, F&& wanted) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(900);
  while (std::chrono::steady_clock::now() < deadline) {
    if (std::filesystem::exists(toy / "runs" / name / "trials.csv")) {
      std::vector<sweep::Trial> trials = trials_of(toy, name);
      if (wanted(trials)) {
        return trials;
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // between two looks, not in place of one
  }
  FAIL("the sweep did not come to what was waited for");
  return {};
}

}  // namespace kf::test
