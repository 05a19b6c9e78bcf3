#include "data/documents/documents.h"

#include <algorithm>

#include "core/digest.h"
#include "core/error.h"

namespace kf {
namespace {

template <class T>
std::string_view bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

void check_stretch(const Documents& documents, std::int64_t first, std::size_t count) {
  const std::int64_t tokens = documents.tokens();
  KF_CHECK(first >= 0 && first <= tokens && static_cast<std::int64_t>(count) <= tokens - first, Code::data,
           "ids {} to {} asked for, the documents have {}", first, first + static_cast<std::int64_t>(count), tokens);
}

}  // namespace

std::int64_t Documents::document_at(std::int64_t position) const {
  KF_CHECK(position >= 0 && position < tokens(), Code::data, "id {} asked for, the documents have {}", position, tokens());
  std::int64_t low = 0;  // start(low) <= position < start(high)
  std::int64_t high = count();
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (start(middle) <= position ? low : high) = middle;
  }
  return low;
}

void Documents::read_mask(std::int64_t first, std::span<std::uint8_t> out) const {
  check_stretch(*this, first, out.size());
  std::fill(out.begin(), out.end(), std::uint8_t{1});
}

void MemoryDocuments::add(std::span<const std::int64_t> ids, std::uint64_t text_hash, std::span<const std::uint8_t> mask) {
  KF_CHECK(mask.empty() || mask.size() == ids.size(), Code::data, "a document of {} ids has a mask of {}", ids.size(), mask.size());
  if (!mask.empty() && mask_.empty()) {
    mask_.assign(ids_.size(), 1);
  }
  for (const std::int64_t id : ids) {
    KF_CHECK(id >= 0 && id <= UINT32_MAX, Code::data, "document {}: id {} does not fit into 32 bits", count(), id);
    ids_.push_back(static_cast<std::uint32_t>(id));
  }
  if (!mask.empty()) {
    mask_.insert(mask_.end(), mask.begin(), mask.end());
  } else if (!mask_.empty()) {
    mask_.resize(ids_.size(), 1);
  }
  starts_.push_back(tokens());
  hashes_.push_back(text_hash);
}

void MemoryDocuments::read(std::int64_t first, std::span<std::int64_t> out) const {
  check_stretch(*this, first, out.size());
  std::copy_n(ids_.begin() + first, out.size(), out.begin());
}

void MemoryDocuments::read_mask(std::int64_t first, std::span<std::uint8_t> out) const {
  if (mask_.empty()) {
    Documents::read_mask(first, out);
    return;
  }
  check_stretch(*this, first, out.size());
  std::copy_n(mask_.begin() + first, out.size(), out.begin());
}

std::string MemoryDocuments::fingerprint() const {
  Digest digest;
  digest.add(bytes_of(ids_));
  digest.add(bytes_of(mask_));
  digest.add(bytes_of(starts_));
  return digest.hex();
}

}  // namespace kf
