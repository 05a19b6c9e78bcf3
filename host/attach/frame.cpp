#include "attach/frame.h"

#include "core/error.h"

namespace kf::attach {
namespace {

constexpr std::size_t kHeader = 5;
constexpr std::string_view kKinds = "herodxg";

}  // namespace

std::string to_bytes(const Frame& frame) {
  KF_CHECK(frame.text.size() <= kMostText, Code::communication, "a text of {} bytes; {} are the most", frame.text.size(), kMostText);
  std::string out(1, static_cast<char>(frame.kind));
  for (unsigned shift = 0; shift < 32; shift += 8) {
    out += static_cast<char>((frame.text.size() >> shift) & 0xffU);
  }
  return out + frame.text;
}

std::optional<Frame> FrameReader::next() {
  if (!bytes_.empty()) {  // before the length is there: who sends something else is told at once
    KF_CHECK(kKinds.find(bytes_[0]) != std::string_view::npos, Code::communication, "what came is no frame: kind {}",
             static_cast<int>(static_cast<unsigned char>(bytes_[0])));
  }
  if (bytes_.size() < kHeader) {
    return std::nullopt;
  }
  std::size_t size = 0;
  for (unsigned i = 0; i < 4; ++i) {
    size |= static_cast<std::size_t>(static_cast<unsigned char>(bytes_[1 + i])) << (8 * i);
  }
  KF_CHECK(size <= kMostText, Code::communication, "a frame of {} bytes; {} are the most", size, kMostText);
  if (bytes_.size() < kHeader + size) {
    return std::nullopt;
  }
  Frame out{static_cast<Frame::Kind>(bytes_[0]), bytes_.substr(kHeader, size)};
  bytes_.erase(0, kHeader + size);
  return out;
}

}  // namespace kf::attach
