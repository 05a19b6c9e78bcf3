#include "data/tokenizer/vocabulary.h"

#include <algorithm>

#include "core/error.h"
#include "data/tokenizer/hash.h"

namespace kf {
namespace {

/// More would be a broken file: the largest vocabularies in use have a quarter of a million tokens.
constexpr std::uint32_t kMaxId = 1U << 26;

std::uint32_t short_hash(std::string_view token) { return static_cast<std::uint32_t>(quick_hash(token) >> 32); }

}  // namespace

void Vocabulary::add(std::string_view token, std::uint32_t id) {
  KF_CHECK(id < kMaxId, Code::data, "the token {} has the id {}; ids go up to {}", quoted(token), id, kMaxId - 1);
  KF_CHECK(token.size() < kMaxId, Code::data, "the token {}... has {} bytes", quoted(token.substr(0, 20)), token.size());
  if (2 * (used_ + 1) > slots_.size()) {
    grow();
  }
  const std::uint32_t hash = short_hash(token);
  Slot& found = slot(token, hash);
  if (found.id_plus_1 == 0) {
    found.hash = hash;
    found.place = {bytes_.size(), static_cast<std::uint32_t>(token.size()), true};
    bytes_ += token;
    ++used_;
    longest_ = std::max(longest_, token.size());
  }
  found.id_plus_1 = id + 1;
  if (id >= tokens_.size()) {
    tokens_.resize(std::size_t{id} + 1);
  }
  tokens_[id] = found.place;
}

std::optional<std::uint32_t> Vocabulary::find(std::string_view token) const {
  if (slots_.empty()) {
    return std::nullopt;
  }
  const std::uint32_t hash = short_hash(token);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash & mask; slots_[at].id_plus_1 != 0; at = (at + 1) & mask) {
    if (slots_[at].hash == hash && text(slots_[at].place) == token) {
      return slots_[at].id_plus_1 - 1;
    }
  }
  return std::nullopt;
}

std::optional<std::string_view> Vocabulary::token(std::uint32_t id) const {
  if (id >= tokens_.size() || !tokens_[id].given) {
    return std::nullopt;
  }
  return text(tokens_[id]);
}

Vocabulary::Slot& Vocabulary::slot(std::string_view token, std::uint32_t hash) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  while (slots_[at].id_plus_1 != 0 && !(slots_[at].hash == hash && text(slots_[at].place) == token)) {
    at = (at + 1) & mask;
  }
  return slots_[at];
}

void Vocabulary::grow() {
  std::vector<Slot> old(std::max<std::size_t>(64, 2 * slots_.size()));
  old.swap(slots_);
  const std::size_t mask = slots_.size() - 1;
  for (const Slot& moved : old) {
    if (moved.id_plus_1 != 0) {
      std::size_t at = moved.hash & mask;
      while (slots_[at].id_plus_1 != 0) {
        at = (at + 1) & mask;
      }
      slots_[at] = moved;
    }
  }
}

}  // namespace kf
