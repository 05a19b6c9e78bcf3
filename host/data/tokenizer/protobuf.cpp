#include "data/tokenizer/protobuf.h"

#include <bit>

#include "core/error.h"

namespace kf {

void ProtobufReader::broken(const char* what) const {
  fail(Code::data, "{}: {} at byte {} of {}: this is no SentencePiece model, or it is cut off", name_, what, at_, bytes_.size());
}

std::uint64_t ProtobufReader::varint() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (at_ >= bytes_.size()) {
      broken("the bytes end inside a number");
    }
    const auto byte = static_cast<unsigned char>(bytes_[at_++]);
    value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
    if (byte < 0x80) {
      return value;
    }
  }
  broken("a number is too long");
}

std::string_view ProtobufReader::take(std::uint64_t count) {
  if (count > bytes_.size() - at_) {
    broken("a field is longer than what is left");
  }
  const std::string_view out = bytes_.substr(at_, count);
  at_ += count;
  return out;
}

bool ProtobufReader::next() {
  if (at_ == bytes_.size()) {
    return false;
  }
  const std::uint64_t key = varint();
  field_ = static_cast<std::uint32_t>(key >> 3);
  if (field_ == 0 || key >> 3 > 0x1fffffff) {
    broken("there is no such field");
  }
  switch (key & 7) {
    case 0: number_ = varint(); break;
    case 1: content_ = take(8); break;
    case 2: content_ = take(varint()); break;
    case 5: content_ = take(4); break;
    default: broken("a field of an unknown kind");
  }
  wire_ = static_cast<Wire>(key & 7);
  return true;
}

std::uint64_t ProtobufReader::integer() const {
  if (wire_ != Wire::varint) {
    broken("a number was expected before");
  }
  return number_;
}

float ProtobufReader::real() const {
  if (wire_ != Wire::fixed32) {
    broken("a real number was expected before");
  }
  std::uint32_t bits = 0;
  for (int i = 3; i >= 0; --i) {
    bits = bits << 8 | static_cast<unsigned char>(content_[static_cast<std::size_t>(i)]);
  }
  return std::bit_cast<float>(bits);
}

std::string_view ProtobufReader::bytes() const {
  if (wire_ != Wire::bytes) {
    broken("text was expected before");
  }
  return content_;
}

}  // namespace kf
