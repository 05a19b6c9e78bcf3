#include "report/serve/guard.h"

#include <catch2/catch.hpp>

#include <string>

using namespace kf::report;

TEST_CASE("guard: a host is this machine's loopback by its names alone, with any port", "[report]") {
  for (const std::string host : {"127.0.0.1", "localhost", "[::1]", "127.0.0.1:1", "localhost:65535", "[::1]:8484"}) {
    CHECK(is_loopback_host(host));
  }
  for (const std::string host : {"", "evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8484", "127.0.0.1:",
                                 "localhost:84x4", "localhost:123456", "localhost@evil.example", "127.0.0.11", "0.0.0.0", " localhost"}) {
    CAPTURE(host);
    CHECK_FALSE(is_loopback_host(host));
  }
}

TEST_CASE("guard: a secret is the same only whole", "[report]") {
  CHECK(same_secret("0123abcd", "0123abcd"));
  for (const std::string given : {"", "0123abc", "0123abcde", "0123abcD", "1123abcd"}) {
    CAPTURE(given);
    CHECK_FALSE(same_secret(given, "0123abcd"));
  }
}
