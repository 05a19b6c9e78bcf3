// What ranks ask for at a step boundary, and what comes from outside.
#include "train/loop/agree.h"

#include <csignal>

#include "core/error.h"
#include "parallel/thread_ranks.h"

#include <catch2/catch.hpp>

using namespace kf;

TEST_CASE("agree: every rank follows the requests and messages of all, in order of rank", "[agree]") {
  std::vector<Requests> agreed(3);
  run_ranks(3, [&](Group& all) {
    const std::int64_t rank = all.rank();
    Requests mine;
    mine.controls.saves = {"all", std::to_string(rank)};
    mine.controls.exports = {"", std::to_string(rank)};
    mine.controls.skip_update = std::to_string(rank);
    if (rank == 1) {
      mine.controls.lr_scale = 0.5;
      mine.messages = {{RunMessage::Kind::stop}};
    }
    if (rank == 2) {
      mine.controls.stop = "done";
      mine.messages = {{RunMessage::Kind::stop}};
    }
    agreed[static_cast<std::size_t>(rank)] = agree(mine, all);
  });
  for (std::size_t rank = 0; rank < agreed.size(); ++rank) {
    CAPTURE(rank);
    const Controls& controls = agreed[rank].controls;
    CHECK(controls.saves == std::vector<std::string>{"all", "0", "1", "2"});
    CHECK(controls.exports == std::vector<std::string>{"", "0", "1", "2"});
    CHECK(controls.lr_scale == 0.5);
    CHECK(controls.stop == "done");
    CHECK(controls.skip_update == std::to_string(rank));
    CHECK((agreed[rank].messages == std::vector<RunMessage>{{RunMessage::Kind::stop}, {RunMessage::Kind::stop}}));
  }
}

TEST_CASE("agree: what is said to one rank is heard by all, to the byte", "[agree]") {
  const std::vector<RunMessage> said{{RunMessage::Kind::chunk, std::string("print('\xff\0\n')", 12), 7}, {RunMessage::Kind::reload}};
  run_ranks(2, [&](Group& all) {
    const Requests agreed = agree({{}, all.rank() == 0 ? said : std::vector<RunMessage>()}, all);
    KF_CHECK(agreed.messages == said, Code::other, "rank {} heard something else", all.rank());
  });
}

TEST_CASE("agree: nothing to ask for is nothing on every rank", "[agree]") {
  run_ranks(2, [](Group& all) {
    const Requests agreed = agree({}, all);
    KF_CHECK(agreed.controls == Controls() && agreed.messages.empty(), Code::other, "something came of nothing");
  });
}

TEST_CASE("inbox: a signal is one message", "[agree]") {
  SignalInbox inbox;
  CHECK(inbox.take().empty());
  std::raise(SIGTERM);
  CHECK((inbox.take() == std::vector<RunMessage>{{RunMessage::Kind::stop}}));
  CHECK(inbox.take().empty());
}
