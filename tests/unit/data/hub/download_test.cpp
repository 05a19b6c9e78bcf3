// Downloads from a server that misbehaves.

#include <catch2/catch.hpp>

#include <chrono>
#include <thread>

#include "core/error.h"
#include "core/sha256.h"
#include "core/text.h"
#include "data/hub/client.h"
#include "unit/data/hub/server.h"

namespace {

using namespace kf;
using Catch::Matchers::Contains;

constexpr hub::Patience kHurried{4, 0.01, 0.05, 1.0};
const std::string kCommit = "c0ffee" + std::string(34, '0');

std::string content() {
  std::string out;
  for (int i = 0; i < 40000; ++i) {
    out += std::to_string(i) + '\n';
  }
  return out;
}

hub::RepoFile listed(const std::string& text) { return {"data/train.txt", static_cast<std::int64_t>(text.size()), sha256(text), true}; }

struct Downloaded {
  std::string text;   // what arrived
  std::string error;  // or why nothing did
  bool partial = false;
};

Downloaded download(const test::HubServer& server, const std::string& mode, const std::string& text, const std::string& token = "") {
  const test::TempDir dir;
  const hub::Client client(server.endpoint(mode), token, kHurried);
  Downloaded out;
  try {
    client.download("org/set", kCommit, listed(text), dir / "blob");
    out.text = read_file(dir / "blob");
  } catch (const Error& error) {
    out.error = error.what();
    CHECK(!fs::exists(dir / "blob"));
  }
  out.partial = fs::exists(dir / "blob.incomplete");
  return out;
}

}  // namespace

TEST_CASE("hub: a file arrives whole though the server is busy, fails, cuts off, falls silent or lies once", "[hub]") {
  const test::HubServer server;
  const std::string text = content();
  server.add("data/train.txt", text);
  for (const char* mode : {"ok", "busy", "failing", "cut", "cut-whole", "silent", "wrong-once", "moved"}) {
    CAPTURE(mode);
    const Downloaded got = download(server, mode, text);
    CHECK(got.error.empty());
    CHECK((got.text == text));
    CHECK(!got.partial);
  }
  // What was cut off is continued, not fetched again.
  const std::vector<std::string> cut = server.requests("/cut/datasets");
  REQUIRE(cut.size() == 2);
  CHECK_THAT(cut[1], Contains("bytes=" + std::to_string(text.size() / 2) + "-"));
}

TEST_CASE("hub: what arrives wrong is refused, and nothing of it stays", "[hub]") {
  const test::HubServer server;
  const std::string text = content();
  server.add("data/train.txt", text);
  const auto [mode, says] = GENERATE(table<std::string, std::string>({
      {"wrong", "the checksum is not"},
      {"long", "more than the 228890 bytes that the repository lists"},
      {"down", "status 500 (tried 4 times)"},
  }));
  CAPTURE(mode);
  const Downloaded got = download(server, mode, text);
  CHECK_THAT(got.error, Contains("data/train.txt: " + says));
  CHECK(!got.partial);
}

TEST_CASE("hub: the token goes to the hub and to no other host", "[hub]") {
  const test::HubServer server;
  const std::string text = content();
  server.add("data/train.txt", text);
  CHECK((download(server, "moved", text, "secret").text == text));
  const std::vector<std::string> requests = server.requests("/moved/datasets");
  REQUIRE(requests.size() == 2);
  CHECK_THAT(requests[0], Contains("127.0.0.1") && Contains("Bearer secret"));
  CHECK_THAT(requests[1], Contains("localhost") && !Contains("Bearer"));
}

TEST_CASE("hub: refusals say what they mean, at once", "[hub]") {
  const test::HubServer server;
  const std::string text = content();
  server.add("data/train.txt", text);
  CHECK_THAT(download(server, "closed", text).error, Contains("status 401") && Contains("set HF_TOKEN"));
  CHECK_THAT(download(server, "closed", text, "guess").error, Contains("the token (HF_TOKEN or its file) does not open it"));
  CHECK((download(server, "closed", text, "secret").text == text));
  CHECK(server.requests("/closed/").size() == 3);
  const hub::Client client(server.endpoint("ok"), "", kHurried);
  CHECK_THROWS_WITH(client.commit("org/absent", "main"), Contains("status 404") && Contains("no such data set"));
}

TEST_CASE("hub: no server is an error after some tries", "[hub]") {
  const hub::Client client("http://127.0.0.1:1", "", {2, 0.01, 0.05, 1.0});
  CHECK_THROWS_WITH(client.commit("org/set", "main"), Contains("(tried 2 times)"));
}

TEST_CASE("hub: Retry-After is seconds or a date", "[hub]") {
  hub::Response response;
  CHECK(hub::retry_after(response) == 0);
  response.headers["retry-after"] = "2.5";
  CHECK(hub::retry_after(response) == 2.5);
  response.headers["retry-after"] = "Fri, 01 Jan 2100 00:00:00 GMT";
  CHECK(hub::retry_after(response) > 1e6);
  response.headers["retry-after"] = "soon";
  CHECK(hub::retry_after(response) == 0);
}

TEST_CASE("hub: two downloaders of one file at once fetch it once", "[hub]") {
  const test::HubServer server;
  const std::string text = content();
  server.add("data/train.txt", text);
  const test::TempDir dir;
  const hub::RepoCache cache("org/set", dir.path());
  const hub::Client client(server.endpoint("ok"), "", kHurried);
  std::vector<std::string> got(4);
  std::vector<std::thread> threads;
  for (std::string& one : got) {
    threads.emplace_back([&] { one = read_file(hub::fetch_into(cache, client, "org/set", kCommit, listed(text))); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK((got == std::vector<std::string>(4, text)));
  CHECK(server.requests("/resolve/").size() == 1);
}

TEST_CASE("hub: all pages of a file list are read, large files with their sha256", "[hub]") {
  const test::HubServer server;
  for (int i = 0; i < 5; ++i) {
    server.add("data/" + std::to_string(i) + ".txt", std::string(static_cast<std::size_t>(i) * 300, 'x'));
  }
  const hub::Client client(server.endpoint("ok"), "", kHurried);
  const std::vector<hub::RepoFile> files = client.files("org/set", client.commit("org/set", "main"));
  REQUIRE(files.size() == 5);
  CHECK(files[4].path == "data/4.txt");
  CHECK(files[4].size == 1200);
  CHECK(files[4].sha256);
  CHECK(files[4].etag == sha256(std::string(1200, 'x')));
  CHECK(!files[1].sha256);
  CHECK(files[1].etag.size() == 40);
}
