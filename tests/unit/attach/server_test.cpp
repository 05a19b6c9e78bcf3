// The socket of a run, without a run.
#include "attach/server.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include <thread>

#include "attach/client.h"
#include "core/error.h"
#include "support/temp_dir.h"

#include <catch2/catch.hpp>

using namespace kf;
using namespace kf::attach;
using Catch::Matchers::Contains;

namespace {

/// Waits for the next wish.
Said heard(Server& server) {
  for (;;) {
    if (std::vector<Said> said = server.take(); !said.empty()) {
      REQUIRE(said.size() == 1);
      return said.front();
    }
    std::this_thread::yield();
  }
}

}  // namespace

TEST_CASE("attach server: answers each client what it asked", "[attach]") {
  const test::TempDir folder;
  Server server(folder.path());
  CHECK(server.take().empty());
  std::thread asks([&] {
    Client client(folder.path());
    const Answer one = client.ask(Frame::Kind::chunk, "one");
    CHECK(one.output == "1");
    CHECK(one.error.empty());
    const Answer two = client.ask(Frame::Kind::reload, "");
    CHECK(two.error == "no");
    CHECK(two.status == 3);
  });
  const Said one = heard(server);
  CHECK(one.kind == Frame::Kind::chunk);
  CHECK(one.text == "one");
  CHECK(server.has(one.client));
  server.answer(one.client, {"1"});
  const Said two = heard(server);
  CHECK(two.kind == Frame::Kind::reload);
  server.answer(two.client, {std::string(2 * kMostText, 'x'), "no", 3});  // longer than a frame
  asks.join();
  while (server.has(one.client)) {
    std::this_thread::yield();
  }
  server.answer(one.client, {"nobody hears it"});
}

TEST_CASE("attach server: one socket a folder; a dead one is replaced, another file is not", "[attach]") {
  const test::TempDir folder;
  {
    const Server server(folder.path());
    CHECK_THROWS_WITH(Server(folder.path()), Contains("listens on") && Contains("already"));
  }
  CHECK_FALSE(fs::exists(folder / kSocket));
  {
    const Descriptor dead(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(Address(folder.path()).bind(dead.get()) == 0);
  }
  CHECK(fs::exists(folder / kSocket));
  { const Server server(folder.path()); }
  folder.write(kSocket, "mine");
  CHECK_THROWS_WITH(Server(folder.path()), Contains("no socket"));
  CHECK(fs::exists(folder / kSocket));
}

TEST_CASE("attach server: clients hear the last words, and one that does not read holds nothing up", "[attach]") {
  const test::TempDir folder;
  auto server = std::make_unique<Server>(folder.path());
  server->set_last_words("that was all");
  const Descriptor deaf(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(Address(folder.path()).connect(deaf.get()) == 0);
  const std::string wish = to_bytes({Frame::Kind::chunk, "deaf"});
  REQUIRE(::send(deaf.get(), wish.data(), wish.size(), 0) == static_cast<ssize_t>(wish.size()));
  server->answer(heard(*server).client, {std::string(kMostText, 'x')});
  Client idle(folder.path());
  std::thread asks([&] { CHECK_THROWS_WITH(idle.ask(Frame::Kind::chunk, "two"), Contains("that was all")); });
  CHECK(heard(*server).text == "two");
  server.reset();
  asks.join();
  CHECK_THROWS_WITH(Client(folder.path()), Contains("no kf-host trains there"));
}
