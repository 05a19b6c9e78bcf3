#include "data/order/index_order.h"

#include <algorithm>

#include "core/error.h"
#include "core/feistel.h"

namespace kf {
namespace {

// What a key is used for, so that the shuffles of one epoch do not resemble each other.
enum class Use : std::uint64_t { samples = 1, blocks, last_block, inside, first_pass, second_pass };

std::uint64_t key_of(std::int64_t seed, std::int64_t epoch, Use use) {
  return mix_keys(mix_keys(static_cast<std::uint64_t>(seed), static_cast<std::uint64_t>(epoch)), static_cast<std::uint64_t>(use));
}

class AsTheyLie final : public IndexOrder {
 public:
  explicit AsTheyLie(std::int64_t size) : size_(size) {}
  std::int64_t size() const override { return size_; }
  std::int64_t at(std::int64_t /*epoch*/, std::int64_t place) const override { return place; }

 private:
  std::int64_t size_;
};

class Permutation final : public IndexOrder {
 public:
  Permutation(std::int64_t size, std::int64_t seed) : size_(size), seed_(seed) {}
  std::int64_t size() const override { return size_; }
  std::int64_t at(std::int64_t epoch, std::int64_t place) const override {
    return Feistel(size_, key_of(seed_, epoch, Use::samples)).at(place);
  }

 private:
  std::int64_t size_;
  std::int64_t seed_;
};

/// The last block may be shorter. It stands at a random place between the others, so that its samples are not always the last.
class Blocks final : public IndexOrder {
 public:
  Blocks(std::int64_t size, std::int64_t seed, std::int64_t block) : size_(size), seed_(seed), block_(std::min(block, size)) {}
  std::int64_t size() const override { return size_; }

  std::int64_t at(std::int64_t epoch, std::int64_t place) const override {
    const std::int64_t full = size_ / block_;
    const std::int64_t rest = size_ % block_;
    const std::int64_t before_short =
        Feistel(full + 1, key_of(seed_, epoch, Use::last_block)).at(full);  // full blocks before the short one
    std::int64_t block = place / block_;
    std::int64_t inside = place % block_;
    if (place >= before_short * block_ && rest > 0) {
      const std::int64_t behind = place - before_short * block_ - rest;
      if (behind < 0) {
        return shuffled(epoch, full, behind + rest, rest);
      }
      block = before_short + behind / block_;
      inside = behind % block_;
    }
    return shuffled(epoch, Feistel(full, key_of(seed_, epoch, Use::blocks)).at(block), inside, block_);
  }

 private:
  std::int64_t shuffled(std::int64_t epoch, std::int64_t block, std::int64_t inside, std::int64_t length) const {
    const std::uint64_t key = mix_keys(key_of(seed_, epoch, Use::inside), static_cast<std::uint64_t>(block));
    return block * block_ + Feistel(length, key).at(inside);
  }

  std::int64_t size_;
  std::int64_t seed_;
  std::int64_t block_;
};

class Window final : public IndexOrder {
 public:
  Window(std::int64_t size, std::int64_t seed, std::int64_t window)
      : size_(size), seed_(seed), half_(std::max<std::int64_t>(1, window / 2)) {}
  std::int64_t size() const override { return size_; }

  std::int64_t at(std::int64_t epoch, std::int64_t place) const override {
    return pass(epoch, pass(epoch, place, half_ / 2, Use::second_pass), 0, Use::first_pass);
  }

 private:
  /// Shuffles within blocks of `half_`, the first of which is `shift` long (0: as long as the others).
  std::int64_t pass(std::int64_t epoch, std::int64_t place, std::int64_t shift, Use use) const {
    const std::int64_t block = (place + (shift > 0 ? half_ - shift : 0)) / half_;
    const std::int64_t begin = std::max<std::int64_t>(0, block * half_ - (shift > 0 ? half_ - shift : 0));
    const std::int64_t end = std::min(size_, (block + 1) * half_ - (shift > 0 ? half_ - shift : 0));
    const std::uint64_t key = mix_keys(key_of(seed_, epoch, use), static_cast<std::uint64_t>(block));
    return begin + Feistel(end - begin, key).at(place - begin);
  }

  std::int64_t size_;
  std::int64_t seed_;
  std::int64_t half_;
};

}  // namespace

std::unique_ptr<IndexOrder> make_index_order(const std::string& kind, std::int64_t size, std::int64_t seed, std::int64_t window) {
  KF_CHECK(size > 0, Code::data, "an order of {} samples: there must be one at least", size);
  if (kind == "none") {
    return std::make_unique<AsTheyLie>(size);
  }
  if (kind == "permutation") {
    return std::make_unique<Permutation>(size, seed);
  }
  if (kind == "block") {
    return std::make_unique<Blocks>(size, seed, window);
  }
  KF_CHECK(kind == "window", Code::data, "no order '{}' of samples by arithmetic; have: none, permutation, block, window", kind);
  return std::make_unique<Window>(size, seed, window);
}

}  // namespace kf
