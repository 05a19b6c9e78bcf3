#pragma once
// A flat hash from 64-bit keys: open addressing, linear probing, no removal. For tables that are filled once and read by all threads.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kf {

template <class Value>
class FlatMap {
 public:
  static constexpr std::uint64_t kNoKey = ~std::uint64_t{0};

  explicit FlatMap(std::size_t expected = 0) { resize(expected); }

  /// Null where there is none.
  const Value* find(std::uint64_t key) const {
    for (std::size_t at = slot(key);; at = (at + 1) & mask_) {
      const Entry& entry = entries_[at];
      if (entry.key == key) {
        return &entry.value;
      }
      if (entry.key == kNoKey) {
        return nullptr;
      }
    }
  }

  /// The value under `key`, made if there is none. `key` must not be kNoKey.
  Value& operator[](std::uint64_t key) {
    if (2 * (size_ + 1) > entries_.size()) {
      resize(2 * size_ + 2);
    }
    std::size_t at = slot(key);
    while (entries_[at].key != key && entries_[at].key != kNoKey) {
      at = (at + 1) & mask_;
    }
    if (entries_[at].key == kNoKey) {
      entries_[at].key = key;
      ++size_;
    }
    return entries_[at].value;
  }

  std::size_t size() const { return size_; }

 private:
  struct Entry {
    std::uint64_t key = kNoKey;
    Value value{};
  };

  std::size_t slot(std::uint64_t key) const { return (key * 0x9e3779b97f4a7c15U) >> shift_; }

  void resize(std::size_t expected) {
    std::vector<Entry> old = std::move(entries_);
    const std::size_t room = std::bit_ceil(2 * expected + 8);
    entries_.assign(room, Entry{});
    mask_ = room - 1;
    shift_ = 64 - std::countr_zero(room);
    size_ = 0;
    for (Entry& entry : old) {
      if (entry.key != kNoKey) {
        (*this)[entry.key] = std::move(entry.value);
      }
    }
  }

  std::vector<Entry> entries_;
  std::size_t mask_ = 0;
  int shift_ = 0;
  std::size_t size_ = 0;
};

}  // namespace kf
