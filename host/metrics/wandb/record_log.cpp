#include "metrics/wandb/record_log.h"

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <optional>

namespace kf::wandb {
namespace {

constexpr std::size_t kBlock = 32768;
constexpr std::size_t kHead = 7;  // checksum (4), length (2), type (1)
enum class Type : unsigned char { full = 1, first = 2, middle = 3, last = 4 };

/// Of the part of a record that is its first one, its last one, both or neither.
Type type_of(bool first, bool last) {
  if (first) {
    return last ? Type::full : Type::first;
  }
  return last ? Type::last : Type::middle;
}

void append_number(std::string& out, std::uint32_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) {
    out += static_cast<char>(number >> (8 * i));
  }
}

std::uint32_t number_at(std::string_view text, std::size_t at, int bytes) {
  std::uint32_t out = 0;
  for (int i = 0; i < bytes; ++i) {
    out |= static_cast<std::uint32_t>(static_cast<unsigned char>(text[at + static_cast<std::size_t>(i)])) << (8 * i);
  }
  return out;
}

std::uint32_t checksum(unsigned char type, std::string_view data) {
  const auto of_type = ::crc32(0, &type, 1);
  return static_cast<std::uint32_t>(::crc32(of_type, reinterpret_cast<const Bytef*>(data.data()), static_cast<uInt>(data.size())));
}

struct Fragment {
  Type type;
  std::string_view data;
};

/// The one at `at`, which is moved behind it; nothing where there is no whole one.
std::optional<Fragment> fragment_at(std::string_view file, std::size_t& at) {
  if (kBlock - at % kBlock < kHead) {
    at += kBlock - at % kBlock;  // zeros up to the end of the block
  }
  if (at + kHead > file.size()) {
    return std::nullopt;
  }
  const std::size_t length = number_at(file, at + 4, 2);
  const auto type = static_cast<unsigned char>(file[at + 6]);
  if (at + kHead + length > file.size() || type < 1 || type > 4) {
    return std::nullopt;
  }
  const std::string_view data = file.substr(at + kHead, length);
  if (checksum(type, data) != number_at(file, at, 4)) {
    return std::nullopt;
  }
  at += kHead + length;
  return Fragment{static_cast<Type>(type), data};
}

/// All fragments of the record at `at`; nothing where it is not whole.
std::optional<std::string> record_at(std::string_view file, std::size_t& at) {
  std::optional<Fragment> part = fragment_at(file, at);
  if (!part || part->type == Type::middle || part->type == Type::last) {
    return std::nullopt;
  }
  std::string out(part->data);
  while (part->type != Type::full && part->type != Type::last) {
    part = fragment_at(file, at);
    if (!part || part->type == Type::full || part->type == Type::first) {
      return std::nullopt;
    }
    out += part->data;
  }
  return out;
}

}  // namespace

std::string log_header() {
  std::string out = ":W&B";
  append_number(out, 0xBEE1, 2);
  append_number(out, 0, 1);  // version
  return out;
}

std::string framed(std::string_view record, std::size_t offset) {
  std::string out;
  bool first = true;
  do {
    const std::size_t left = kBlock - (offset + out.size()) % kBlock;
    if (left < kHead) {
      out.append(left, '\0');
      continue;
    }
    const std::string_view data = record.substr(0, std::min(record.size(), left - kHead));
    record.remove_prefix(data.size());
    const auto type = static_cast<unsigned char>(type_of(first, record.empty()));
    append_number(out, checksum(type, data), 4);
    append_number(out, static_cast<std::uint32_t>(data.size()), 2);
    out += static_cast<char>(type);
    out += data;
    first = false;
  } while (first || !record.empty());
  return out;
}

LogContent read_log(std::string_view file) {
  LogContent out;
  std::size_t at = log_header().size();
  if (!file.starts_with(log_header())) {
    out.whole = false;
    return out;
  }
  while (at < file.size()) {
    std::optional<std::string> record = record_at(file, at);
    if (!record) {
      out.whole = false;
      return out;
    }
    out.records.push_back(std::move(*record));
  }
  return out;
}

}  // namespace kf::wandb
