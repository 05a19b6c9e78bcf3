#include <catch2/catch.hpp>

#include "core/error.h"
#include "parallel/c10d_group.h"
#include "parallel/group.h"
#include "parallel/thread_ranks.h"
#include "processes.h"
#include "programs.h"

using namespace kf;
using namespace kf::test;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using std::chrono::milliseconds;

namespace {

std::string hex_of(const std::string& bytes) {
  std::string text = "said: ";
  for (const char c : bytes) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
    text += two;
  }
  return text;
}

// Every rank but `out` ended with an error that has all of `words`.
void check_errors(const std::vector<Finished>& ranks, const std::vector<std::string>& words, std::int64_t out = -1) {
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (static_cast<std::int64_t>(rank) == out) {
      continue;
    }
    CAPTURE(rank, ranks[rank].out);
    CHECK(ranks[rank].status == 4);
    CHECK_FALSE(ranks[rank].timed_out);
    for (const std::string& word : words) {
      CHECK_THAT(ranks[rank].err, Contains(word));
    }
  }
}

}  // namespace

TEST_CASE("processes: every call gives the formula's bits on 2, 3 and 4 ranks, by file and by TCP", "[parallel]") {
  const std::int64_t world = GENERATE(1, 2, 3, 4);
  const Meet meet = world % 2 == 0 ? Meet::tcp : Meet::file;
  CAPTURE(world);
  for (const Finished& rank : run_processes("calls", world, {meet})) {
    CAPTURE(rank.err);
    CHECK(rank.status == 0);
    CHECK(said(rank) == hex_of("right"));
  }
}

TEST_CASE("processes: they meet at a store that somebody else keeps", "[parallel]") {
  for (const Finished& rank : run_processes("calls", 2, {Meet::agent})) {
    CAPTURE(rank.err);
    CHECK(rank.status == 0);
    CHECK(said(rank) == hex_of("right"));
  }
}

TEST_CASE("processes: they have the bits of threads", "[parallel]") {
  for (const std::string program : {"mixed", "parts", "mesh"}) {
    CAPTURE(program);
    std::vector<std::string> threads(4);
    run_ranks(4, [&](Group& all) { threads[static_cast<std::size_t>(all.rank())] = run_program(program, all); });
    const std::vector<Finished> processes = run_processes(program, 4);
    for (std::size_t rank = 0; rank < 4; ++rank) {
      CHECK(said(processes[rank]) == hex_of(threads[rank]));
      CHECK(processes[rank].err.empty());
    }
  }
}

TEST_CASE("processes: an error of one rank ends all others with its name and message", "[parallel]") {
  const Meet meet = GENERATE(Meet::file, Meet::tcp);
  const std::vector<Finished> ranks = run_processes("throws", 3, {meet});
  check_errors(ranks, {"rank 1: the file is broken", "in sum of float32 [3] in group all"}, 1);
  CHECK(ranks[1].err == "the file is broken\n");
}

TEST_CASE("processes: a rank that is killed ends all others at once, and they name it", "[parallel]") {
  const Meet meet = GENERATE(Meet::file, Meet::tcp);
  const std::vector<Finished> ranks = run_processes("killed", 4, {meet});
  check_errors(ranks, {"rank 3 is gone: its connection to rank ", "in sum of float32 [3] in group all"}, 3);
  CHECK(ranks[3].status == 128 + 9);
}

TEST_CASE("processes: so do those that wait for its letter, or for those that do", "[parallel]") {
  check_errors(run_processes("killed_elsewhere", 3), {"rank 2 is gone"}, 2);
}

TEST_CASE("processes: so do those whose calls run behind them", "[parallel]") {
  check_errors(run_processes("killed_behind", 3), {"rank 2 is gone", "in sum of float32 [30000] in group "}, 2);
}

TEST_CASE("processes: a world is joined with its groups", "[parallel]") {
  const std::vector<Finished> ranks = run_processes("join", 4, {Meet::tcp});
  CHECK(said(ranks[0]) == hex_of("0 0/4 0,1,2,3 0,2 0,1 0,1,2,3"));
  CHECK(said(ranks[3]) == hex_of("3 3/4 0,1,2,3 1,3 2,3 0,1,2,3"));
}

TEST_CASE("processes: the rank that keeps the rendezvous may be the one that is killed", "[parallel]") {
  check_errors(run_processes("first_killed", 3, {Meet::file}), {"rank 0 is gone"}, 0);
  check_errors(run_processes("first_killed", 3, {Meet::tcp}), {"rank 0", "is gone"}, 0);
}

TEST_CASE("processes: after the time-out of a call all say who did not come", "[parallel]") {
  const std::vector<Finished> ranks = run_processes("late", 3, {Meet::file, milliseconds(1500)});
  check_errors(ranks, {"rank 1 did not come to sum of float32 [3] in group all within 1.5 s"}, 1);
}

TEST_CASE("processes: after the time-out of the rendezvous those that came say who did not", "[parallel]") {
  const Meet meet = GENERATE(Meet::file, Meet::tcp);
  const std::vector<Finished> ranks = run_processes("calls", 4, {meet, milliseconds(1000), {1, 3}});
  for (const std::size_t rank : {0U, 2U}) {
    CHECK(ranks[rank].status == 4);
    CHECK_THAT(ranks[rank].err, Contains("ranks 1, 3 of 4 did not come to the rendezvous ") && Contains("within 1 s"));
  }
  const std::vector<Finished> headless = run_processes("calls", 2, {Meet::tcp, milliseconds(1000), {0}});
  CHECK_THAT(headless[1].err, Contains("rank 1 cannot reach 127.0.0.1:") && Contains("(kept by rank 0) within 1 s: nobody answers there"));
  CHECK_THAT(headless[1].err, !Contains("frame #") && !Contains("[c10d]"));
}

TEST_CASE("processes: calls that do not match say who does what", "[parallel]") {
  check_errors(run_processes("mismatched", 3), {"calls in group all do not match: rank ", "calls sum of float32 [3]",
                                                "rank 1 calls gather of float32 [3] in parts of [1, 1, 1] rows"});
  check_errors(run_processes("other_lengths", 2),
               {"calls in group all do not match: rank 0 calls sum of float32 [40000], rank 1 calls sum of float32 [50000]"});
  check_errors(run_processes("other_rows", 2), {"3 of them from rank 1 to rank 0", "2 of them from rank 1 to rank 0"});
  check_errors(run_processes("other_letter", 2), {"rank 1 receives float32 [4] from rank 0, which sends float32 [3]"});
}

TEST_CASE("processes: an error comes out of a begun call's wait and out of every later call", "[parallel]") {
  const std::vector<Finished> ranks = run_processes("twice", 2);
  CHECK_THAT(ranks[0].err, Contains("twice: rank 1: the file is broken"));
}

TEST_CASE("processes: a mixed program gives the same bits every time", "[parallel]") {
  const std::string first = said(run_processes("mixed", 3)[2]);
  CHECK(first.size() > 1000);
  for (int i = 0; i < 5; ++i) {
    REQUIRE(said(run_processes("mixed", 3, {i % 2 == 0 ? Meet::tcp : Meet::file})[2]) == first);
  }
}

TEST_CASE("processes: a rendezvous that is none is refused", "[parallel]") {
  Rendezvous rendezvous;
  rendezvous.world = 2;
  for (const std::string where : {"", "somewhere", "host:", "host:port", ":123", "host:70000"}) {
    rendezvous.where = where;
    CHECK_THROWS_WITH(join_processes(rendezvous), "'" + where + "' (--rdzv) is neither HOST:PORT nor file:PATH; a port is 1 to 65535");
  }
  rendezvous.rank = 1;
  rendezvous.timeout = milliseconds(1);
  rendezvous.where = "nobody.invalid:29500";
  CHECK_THROWS_WITH(join_processes(rendezvous),
                    StartsWith("rank 1 cannot find nobody.invalid:29500 ") && Contains("does not know the host 'nobody.invalid'"));
  rendezvous.rank = 2;
  CHECK_THROWS_WITH(join_processes(rendezvous), "rank 2 of a world of 2");
}
