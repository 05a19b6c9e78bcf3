#pragma once
// Real processes as ranks: this test program starts itself, once a rank.

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "support/process.h"

namespace kf::test {

/// agent: a store that the test keeps, as torchrun does.
enum class Meet { file, tcp, agent };

struct Ranks {
  Meet meet = Meet::file;
  std::chrono::milliseconds timeout{60000};
  std::vector<std::int64_t> absent = {};  // not started
};

/// How each rank of `program` ended, by rank: its words are behind "said: " on stdout, its error is on stderr with status 4. Absent ones
/// have status -1.
std::vector<Finished> run_processes(const std::string& program, std::int64_t world, const Ranks& ranks = {});

/// What a rank said.
std::string said(const Finished& rank);

}  // namespace kf::test
