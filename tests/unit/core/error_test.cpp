#include "core/error.h"

#include <catch2/catch.hpp>

using namespace kf;

TEST_CASE("error: the code is the exit status", "[error]") {
  CHECK(static_cast<int>(Code::other) == 1);
  CHECK(static_cast<int>(Code::config) == 2);
  CHECK(static_cast<int>(Code::script) == 3);
  CHECK(static_cast<int>(Code::communication) == 4);
  CHECK(static_cast<int>(Code::data) == 5);
  CHECK(static_cast<int>(Code::checkpoint) == 6);
}

TEST_CASE("error: a failed check throws the message with its values and its code", "[error]") {
  const int size = 7;
  try {
    KF_CHECK(size < 5, Code::data, "{}: {} bytes, at most {}", "a.bin", size, 5);
    FAIL("nothing was thrown");
  } catch (const Error& e) {
    CHECK(std::string(e.what()) == "a.bin: 7 bytes, at most 5");
    CHECK(e.code() == Code::data);
  }
}

TEST_CASE("error: a check that holds evaluates none of its message", "[error]") {
  int evaluated = 0;
  KF_CHECK(true, Code::other, "{}", ++evaluated);
  CHECK(evaluated == 0);
}

TEST_CASE("error: context lines are added on the way up, the innermost first", "[error]") {
  try {
    try {
      fail(Code::checkpoint, "bad header");
    } catch (Error& e) {
      throw e.context("in model.safetensors").context("while resuming");
    }
  } catch (const Error& e) {
    CHECK(std::string(e.what()) == "bad header\n  in model.safetensors\n  while resuming");
    CHECK(e.code() == Code::checkpoint);
  }
}
