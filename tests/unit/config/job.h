#pragma once
// Loads a job from text for a test.

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "catalog.h"
#include "core/text.h"
#include "support/temp_dir.h"

namespace kf::test {

/// What a test loads: text of job.toml (none: the defaults), and the command line.
struct JobText {
  std::optional<std::string> toml;
  std::vector<std::string> overrides = {};
  std::optional<std::int64_t> world = {};
  bool files_must_exist = false;
};

inline config::Loaded load_job(const JobText& job) {
  const TempDir temp;
  config::Request request;
  request.overrides = job.overrides;
  request.world = job.world;
  request.files_must_exist = job.files_must_exist;
  if (job.toml) {
    request.job = temp.write("job.toml", *job.toml);
  }
  return config::load(request, reference_catalog());
}

inline config::Loaded load_toml(const std::string& toml) { return load_job({toml}); }
inline config::Loaded load_cli(std::vector<std::string> overrides) { return load_job({std::nullopt, std::move(overrides)}); }

/// The settings of a job that must be fine.
inline config::Config good(const config::Loaded& loaded) {
  INFO(config::to_text(loaded.report));
  REQUIRE(loaded.report.problems.empty());
  return loaded.config;
}

/// The messages of all problems, a line each, without their places.
inline std::string messages(const config::Loaded& loaded) {
  std::vector<std::string> out;
  for (const config::Problem& problem : loaded.report.problems) {
    out.push_back(problem.message);
  }
  return join(out, "\n");
}

/// The single problem's message.
inline std::string problem(const config::Loaded& loaded) {
  INFO(config::to_text(loaded.report));
  REQUIRE(loaded.report.problems.size() == 1);
  return loaded.report.problems[0].message;
}

}  // namespace kf::test
