#pragma once
// Tokenized documents: one stream of ids in which every document is a stretch. What packing and orders are built on; sees no torch.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kf {

/// Read-only and safe to use from several threads. Ids are in [0, vocab_size): whoever opened the documents has checked them. A document's
/// own ends are part of it: with data.add_eos its last id is the end of a document, with data.add_bos its first the beginning.
class Documents {
 public:
  virtual ~Documents() = default;

  virtual std::int64_t count() const = 0;
  /// Ids of all documents together.
  virtual std::int64_t tokens() const = 0;
  /// Position in the stream of the first id of document `index`, 0 <= index <= count(); start(count()) == tokens(). Never falls; documents
  /// without an id (empty text without add_eos) are possible. O(1).
  virtual std::int64_t start(std::int64_t index) const = 0;
  std::int64_t length(std::int64_t index) const { return start(index + 1) - start(index); }
  /// The document that holds the id at `position`, 0 <= position < tokens(). O(log count()).
  std::int64_t document_at(std::int64_t position) const;

  /// Copies the ids [first, first + out.size()) of the stream; they may belong to several documents. Throws Code::data outside of it.
  virtual void read(std::int64_t first, std::span<std::int64_t> out) const = 0;

  /// Whether some ids do not count for the loss (data.loss_on = "answers"); without a mask all of them do.
  virtual bool has_mask() const { return false; }
  /// Of the ids [first, first + out.size()): 1 where the id counts as something to predict, else 0.
  virtual void read_mask(std::int64_t first, std::span<std::uint8_t> out) const;

  /// hash64 (core/digest.h) of the document's text after transforms: decides which documents are held out.
  virtual std::uint64_t text_hash(std::int64_t index) const = 0;

  /// "613 files, 11.2 MB of text, 11,241,807 tokens (bytes)": for the line `data` at the start of a run.
  virtual std::string describe() const = 0;
  /// Changes when the ids or their borders do: a resumed run compares it.
  virtual std::string fingerprint() const = 0;
};

/// Documents in memory: for tests, and where nothing can be cached.
class MemoryDocuments final : public Documents {
 public:
  explicit MemoryDocuments(std::string description = "documents in memory") : description_(std::move(description)) {}

  /// `mask`: one value an id, 1 where it counts; empty when all do.
  void add(std::span<const std::int64_t> ids, std::uint64_t text_hash, std::span<const std::uint8_t> mask = {});
  void set_description(std::string description) { description_ = std::move(description); }

  std::int64_t count() const override { return static_cast<std::int64_t>(hashes_.size()); }
  std::int64_t tokens() const override { return static_cast<std::int64_t>(ids_.size()); }
  std::int64_t start(std::int64_t index) const override { return starts_[static_cast<std::size_t>(index)]; }
  void read(std::int64_t first, std::span<std::int64_t> out) const override;
  bool has_mask() const override { return !mask_.empty(); }
  void read_mask(std::int64_t first, std::span<std::uint8_t> out) const override;
  std::uint64_t text_hash(std::int64_t index) const override { return hashes_[static_cast<std::size_t>(index)]; }
  std::string describe() const override { return description_; }
  std::string fingerprint() const override;

 private:
  std::string description_;
  std::vector<std::uint32_t> ids_;
  std::vector<std::uint8_t> mask_;  // empty: all count
  std::vector<std::int64_t> starts_{0};
  std::vector<std::uint64_t> hashes_;
};

}  // namespace kf
