#include "data/file/lines.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"

namespace kf {
namespace {

constexpr std::size_t kBuffer = std::size_t{1} << 20;
constexpr std::size_t kLarge = 16 * kBuffer;  // not kept for lines that need less

}  // namespace

Lines::Lines(std::unique_ptr<ByteStream> stream, fs::path name, std::size_t longest)
    : stream_(std::move(stream)), name_(std::move(name)), longest_(longest), buffer_(kBuffer + kPadding) {}

std::optional<std::string_view> Lines::next() {
  if (buffer_.size() > kLarge && end_ - begin_ < kBuffer) {
    std::vector<char> smaller(2 * kBuffer + kPadding);
    std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_), buffer_.begin() + static_cast<std::ptrdiff_t>(end_), smaller.begin());
    buffer_ = std::move(smaller);
    end_ -= begin_;
    begin_ = scanned_ = 0;
  }
  const char* found = nullptr;
  do {
    found = static_cast<const char*>(std::memchr(buffer_.data() + scanned_, '\n', end_ - scanned_));
  } while (found == nullptr && refill());
  if (found == nullptr && begin_ == end_) {
    return std::nullopt;
  }
  const std::size_t stop = found == nullptr ? end_ : static_cast<std::size_t>(found - buffer_.data());
  const std::string_view line(buffer_.data() + begin_, stop - begin_);
  KF_CHECK(line.size() <= longest_, Code::data, "{}:{}: a line of {} bytes, more than data.max_record_bytes ({})", name_, number_ + 1,
           line.size(), longest_);
  const std::size_t taken = line.size() + (found == nullptr ? 0 : 1);
  begin_ += taken;
  scanned_ = begin_;
  offset_ += static_cast<std::int64_t>(taken);
  ++number_;
  return line;
}

void Lines::skip(std::int64_t limit) {
  ++number_;
  for (;;) {
    const char* const from = buffer_.data() + begin_;
    const auto* const found = static_cast<const char*>(std::memchr(from, '\n', end_ - begin_));
    const std::size_t taken = found == nullptr ? end_ - begin_ : static_cast<std::size_t>(found - from) + 1;
    begin_ += taken;
    scanned_ = begin_;
    offset_ += static_cast<std::int64_t>(taken);
    if (found != nullptr || offset_ >= limit || !refill()) {
      return;
    }
  }
}

/// More bytes behind those at hand, which move to the front; false at the end of the stream.
bool Lines::refill() {
  scanned_ = end_;
  if (ended_) {
    return false;
  }
  const std::size_t kept = end_ - begin_;
  KF_CHECK(kept <= longest_, Code::data, "{}:{}: a line of more than {} bytes (data.max_record_bytes); is it a file of lines?", name_,
           number_ + 1, longest_);
  std::memmove(buffer_.data(), buffer_.data() + begin_, kept);
  begin_ = 0;
  end_ = scanned_ = kept;
  if (buffer_.size() - kPadding - kept < kBuffer / 2) {
    buffer_.resize(std::max(2 * buffer_.size(), kept + kBuffer + kPadding));
  }
  const std::size_t got = stream_->read(buffer_.data() + end_, buffer_.size() - kPadding - end_);
  end_ += got;
  ended_ = got == 0;
  return got > 0;
}

}  // namespace kf
