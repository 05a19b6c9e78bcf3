#include "processes.h"

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <catch2/catch.hpp>  // behind torch: it has a CHECK of its own
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <stdexcept>

#include "core/error.h"
#include "parallel/c10d_group.h"
#include "parallel/world.h"
#include "programs.h"
#include "support/free_port.h"
#include "support/temp_dir.h"

namespace kf::test {
namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::string hex(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) {
    constexpr const char* kDigits = "0123456789abcdef";
    text += kDigits[static_cast<unsigned char>(c) >> 4];
    text += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

// As a program that ends with an error: the others are told, everything is closed, then it is said.
std::string run_rank() {
  Rendezvous rendezvous;
  rendezvous.where = variable("KF_TEST_WHERE");
  rendezvous.rank = std::stoll(variable("KF_TEST_RANK"));
  rendezvous.world = std::stoll(variable("KF_TEST_WORLD"));
  rendezvous.kept = !variable("KF_TEST_KEPT").empty();
  rendezvous.prefix = rendezvous.kept ? "kf-host/0" : "";
  rendezvous.timeout = std::chrono::milliseconds(std::stoll(variable("KF_TEST_TIMEOUT")));
  if (variable("KF_TEST_PROGRAM") == "join") {  // makes its own world: replicas of two ranks along ep
    const World world(std::shared_ptr<Group>(join_processes(rendezvous)), Mesh(PerAxis{1, rendezvous.world / 2, 1, 1, 2, 1}));
    std::string words = format("{} {}/{}", world.rank(), world.share().rank, world.share().world);
    for (Group* const group : {&world.data(), &world.along(Axis::dp_replicate), &world.along(Axis::ep), &world.files()}) {
      words += " " + join(group->tell(to_text(world.rank())), ",");
    }
    return words;
  }
  const std::unique_ptr<Group> all = join_processes(rendezvous);
  try {
    return run_program(variable("KF_TEST_PROGRAM"), *all);
  } catch (const std::exception& e) {
    all->end(e.what());
    throw;
  }
}

}  // namespace

TEST_CASE("(a rank of another test)", "[.rank]") {
  try {
    const std::string words = run_rank();
    std::cout << "said: " << hex(words) << std::endl;
    std::_Exit(0);  // without what torch does at the end, a third of such a process
  } catch (const std::exception& e) {
    std::cerr << e.what() << std::endl;
    std::_Exit(4);
  }
}

std::vector<Finished> run_processes(const std::string& program, std::int64_t world, const Ranks& ranks) {
  const TempDir folder;
  const std::string where = ranks.meet == Meet::file ? "file:" + (folder / "meet").string() : format("127.0.0.1:{}", free_port());
  c10::intrusive_ptr<c10d::TCPStore> kept;
  if (ranks.meet == Meet::agent) {
    c10d::TCPStoreOptions options;
    options.port = static_cast<std::uint16_t>(std::stoi(where.substr(where.find(':') + 1)));
    options.isServer = true;
    options.waitWorkers = false;
    kept = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  }
  std::vector<std::unique_ptr<Process>> processes;
  for (std::int64_t rank = 0; rank < world; ++rank) {
    if (std::find(ranks.absent.begin(), ranks.absent.end(), rank) != ranks.absent.end()) {
      processes.emplace_back();
      continue;
    }
    Options options;
    options.env = {{"KF_TEST_WHERE", where},          {"KF_TEST_RANK", to_text(rank)},
                   {"KF_TEST_WORLD", to_text(world)}, {"KF_TEST_TIMEOUT", to_text(ranks.timeout.count())},
                   {"KF_TEST_KEPT", kept ? "1" : ""}, {"KF_TEST_PROGRAM", program}};
    processes.push_back(std::make_unique<Process>(std::vector<std::string>{"/proc/self/exe", "[.rank]"}, options));
  }
  std::vector<Finished> finished;
  for (const auto& process : processes) {
    finished.push_back(process == nullptr ? Finished{} : process->wait());
  }
  return finished;
}

std::string said(const Finished& rank) {
  const std::size_t begin = rank.out.find("said: ");
  return begin == std::string::npos ? "nothing: " + rank.err : rank.out.substr(begin, rank.out.find('\n', begin) - begin);
}

}  // namespace kf::test
