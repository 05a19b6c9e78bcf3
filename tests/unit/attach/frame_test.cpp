// What goes over a run's socket.
#include "attach/frame.h"

#include "core/error.h"

#include <catch2/catch.hpp>

using namespace kf;
using namespace kf::attach;
using Catch::Matchers::Contains;

TEST_CASE("attach frames: come out as they went in, however the bytes are cut", "[attach]") {
  const std::string text("a\0b\n\xff", 5);
  const std::string bytes = to_bytes({Frame::Kind::chunk, text}) + to_bytes({Frame::Kind::done, ""});
  for (std::size_t step = 1; step <= bytes.size(); ++step) {
    CAPTURE(step);
    FrameReader reader;
    std::vector<Frame> frames;
    for (std::size_t at = 0; at < bytes.size(); at += step) {
      reader.add(std::string_view(bytes).substr(at, step));
      while (std::optional<Frame> frame = reader.next()) {
        frames.push_back(*frame);
      }
    }
    REQUIRE(frames.size() == 2);
    CHECK(frames[0].kind == Frame::Kind::chunk);
    CHECK(frames[0].text == text);
    CHECK(frames[1].kind == Frame::Kind::done);
    CHECK(frames[1].text.empty());
  }
}

TEST_CASE("attach frames: what is none is refused as soon as it shows", "[attach]") {
  CHECK_THROWS_WITH(to_bytes({Frame::Kind::chunk, std::string(kMostText + 1, 'x')}), Contains("are the most"));
  FrameReader other;
  other.add("G");
  CHECK_THROWS_WITH(other.next(), Contains("no frame"));
  FrameReader longer;
  longer.add(std::string_view("e\x01\x00\x10\x00", 5));
  CHECK_THROWS_WITH(longer.next(), Contains("1048577 bytes"));
  FrameReader whole;
  whole.add(std::string_view("e\x00\x00\x10\x00", 5));
  CHECK_FALSE(whole.next().has_value());
}
