#pragma once
// The wire format of protocol buffers, read field by field within bounds.

#include <cstdint>
#include <string>
#include <string_view>

namespace kf {

class ProtobufReader {
 public:
  /// `name` stands in messages.
  ProtobufReader(std::string_view bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {}

  /// The next field; false at the end. Throws Code::data with the offset where the bytes are cut off or no field begins.
  bool next();
  std::uint32_t field() const { return field_; }
  /// The field's value; each throws where it was written as something else.
  std::uint64_t integer() const;
  float real() const;
  std::string_view bytes() const;

 private:
  enum class Wire : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

  std::uint64_t varint();
  std::string_view take(std::uint64_t count);
  [[noreturn]] void broken(const char* what) const;

  std::string_view bytes_;
  std::string name_;
  std::size_t at_ = 0;
  std::uint32_t field_ = 0;
  Wire wire_ = Wire::varint;
  std::uint64_t number_ = 0;
  std::string_view content_;
};

}  // namespace kf
