#pragma once
// The documents of a finished cache: mapped, nothing is read before it is asked for.

#include <memory>
#include <string>
#include <vector>

#include "data/cache/inventory.h"
#include "data/cache/manifest.h"
#include "data/documents/documents.h"

namespace kf::cache {

class CachedDocuments final : public Documents {
 public:
  /// Checks sizes and headers. Throws Code::data naming what does not fit.
  CachedDocuments(fs::path folder, Manifest manifest, std::string description);

  std::int64_t count() const override { return first_document_.back(); }
  std::int64_t tokens() const override { return first_token_.back(); }
  std::int64_t start(std::int64_t index) const override;
  void read(std::int64_t first, std::span<std::int64_t> out) const override;
  bool has_mask() const override { return !shards_.empty() && shards_.front().mask != nullptr; }
  void read_mask(std::int64_t first, std::span<std::uint8_t> out) const override;
  std::uint64_t text_hash(std::int64_t index) const override;
  std::string describe() const override { return description_; }
  std::string fingerprint() const override { return fingerprint_; }

  const fs::path& folder() const { return folder_; }
  const Manifest& manifest() const { return manifest_; }
  /// Throws Code::data naming the document when an id is not below `vocab_size`. Looks for it only where a shard is known to have one.
  void check_vocabulary(std::int64_t vocab_size) const;
  /// Every hash, border and id: what is wrong, one line each. Reads everything.
  std::vector<std::string> faults() const;

 private:
  struct Arrays {
    MappedArray ids;
    MappedArray ends;
    MappedArray hashes;
    std::unique_ptr<MappedArray> mask;
  };

  std::size_t shard_of(const std::vector<std::int64_t>& firsts, std::int64_t index) const;
  void copy_ids(std::size_t shard, std::int64_t from, std::span<std::int64_t> out) const;
  void border_faults(std::size_t shard, std::vector<std::string>& out) const;
  void check(std::int64_t first, std::size_t count) const;

  fs::path folder_;
  InUse in_use_;
  Manifest manifest_;
  std::string description_;
  std::string fingerprint_;
  std::vector<Arrays> shards_;
  std::vector<std::int64_t> first_document_{0};  // of each shard, and the end
  std::vector<std::int64_t> first_token_{0};
};

}  // namespace kf::cache
