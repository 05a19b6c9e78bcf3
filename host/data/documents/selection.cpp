#include "data/documents/selection.h"

#include <algorithm>
#include <cmath>

#include "core/digest.h"
#include "core/error.h"
#include "core/log.h"

namespace kf {
namespace {

/// The ids [begin, end) of another stream.
class Stretch final : public Documents {
 public:
  Stretch(DocumentsPtr base, std::int64_t begin, std::int64_t end)
      : base_(std::move(base)),
        begin_(begin),
        end_(end),
        first_(begin < base_->tokens() ? base_->document_at(begin) : base_->count()),
        count_(end > begin ? base_->document_at(end - 1) + 1 - first_ : 0) {}

  std::int64_t count() const override { return count_; }
  std::int64_t tokens() const override { return end_ - begin_; }
  std::int64_t start(std::int64_t index) const override {
    return index == count_ ? tokens() : std::max(base_->start(first_ + index), begin_) - begin_;
  }
  void read(std::int64_t first, std::span<std::int64_t> out) const override {
    check(first, out.size());
    base_->read(begin_ + first, out);
  }
  bool has_mask() const override { return base_->has_mask(); }
  void read_mask(std::int64_t first, std::span<std::uint8_t> out) const override {
    check(first, out.size());
    base_->read_mask(begin_ + first, out);
  }
  std::uint64_t text_hash(std::int64_t index) const override { return base_->text_hash(first_ + index); }
  std::string describe() const override { return base_->describe(); }
  std::string fingerprint() const override {
    Digest digest;
    digest.add(base_->fingerprint());
    digest.add(format("{} {}", begin_, end_));
    return digest.hex();
  }

 private:
  void check(std::int64_t first, std::size_t count) const {
    KF_CHECK(first >= 0 && first <= tokens() && static_cast<std::int64_t>(count) <= tokens() - first, Code::data,
             "ids {} to {} asked for, the documents have {}", first, first + static_cast<std::int64_t>(count), tokens());
  }

  DocumentsPtr base_;
  std::int64_t begin_;
  std::int64_t end_;
  std::int64_t first_;  // document of `begin_`
  std::int64_t count_;
};

/// Whole documents of another stream, by number. 16 bytes a document.
class Subset final : public Documents {
 public:
  Subset(DocumentsPtr base, std::vector<std::int64_t> members) : base_(std::move(base)), members_(std::move(members)), starts_{0} {
    starts_.reserve(members_.size() + 1);
    for (const std::int64_t member : members_) {
      starts_.push_back(starts_.back() + base_->length(member));
    }
  }

  std::int64_t count() const override { return static_cast<std::int64_t>(members_.size()); }
  std::int64_t tokens() const override { return starts_.back(); }
  std::int64_t start(std::int64_t index) const override { return starts_[static_cast<std::size_t>(index)]; }
  void read(std::int64_t first, std::span<std::int64_t> out) const override {
    each_piece(first, out.size(), [&](std::int64_t from, std::size_t at, std::size_t count) { base_->read(from, out.subspan(at, count)); });
  }
  bool has_mask() const override { return base_->has_mask(); }
  void read_mask(std::int64_t first, std::span<std::uint8_t> out) const override {
    each_piece(first, out.size(),
               [&](std::int64_t from, std::size_t at, std::size_t count) { base_->read_mask(from, out.subspan(at, count)); });
  }
  std::uint64_t text_hash(std::int64_t index) const override { return base_->text_hash(members_[static_cast<std::size_t>(index)]); }
  std::string describe() const override { return base_->describe(); }
  std::string fingerprint() const override { return base_->fingerprint(); }  // the loader adds the share that is held out

 private:
  /// f(position in the base, place in the output, how many) for each document's part of the stretch.
  template <class F>
  void each_piece(std::int64_t first, std::size_t count, F f) const {
    KF_CHECK(first >= 0 && first <= tokens() && static_cast<std::int64_t>(count) <= tokens() - first, Code::data,
             "ids {} to {} asked for, the documents have {}", first, first + static_cast<std::int64_t>(count), tokens());
    auto index = count == 0 ? std::int64_t{0} : document_at(first);
    for (std::size_t done = 0; done < count; ++index) {
      const std::int64_t within = first + static_cast<std::int64_t>(done) - start(index);
      const std::size_t take = std::min(static_cast<std::size_t>(length(index) - within), count - done);
      f(base_->start(members_[static_cast<std::size_t>(index)]) + within, done, take);
      done += take;
    }
  }

  DocumentsPtr base_;
  std::vector<std::int64_t> members_;
  std::vector<std::int64_t> starts_;
};

bool held_out(std::uint64_t text_hash, double share) {
  return static_cast<double>(text_hash) < share * 18446744073709551616.0;  // 2^64
}

DocumentsPtr cut_tail(DocumentsPtr documents, double share, Side side, std::int64_t window) {
  const std::int64_t total = documents->tokens();
  const std::int64_t kept = total - std::llround(share * static_cast<double>(total));
  KF_CHECK(
      kept >= window && total - kept >= window, Code::data,
      "data.holdout = {} of {} ids of text leaves {} to learn from and {} to evaluate; each side needs a window of {} (train.seq_len + 1)",
      share, total, kept, total - kept, window);
  if (side == Side::training) {
    log::info("data.holdout = {}: too few documents to choose from ({}), so the last part of the text is held out", share,
              documents->count());
    return std::make_shared<Stretch>(std::move(documents), 0, kept);
  }
  return std::make_shared<Stretch>(std::move(documents), kept, total);
}

}  // namespace

DocumentsPtr first_documents(DocumentsPtr documents, std::int64_t max_documents, std::int64_t max_tokens, std::int64_t window,
                             const std::string& key) {
  KF_CHECK(max_tokens == 0 || max_tokens >= window, Code::data, "{} = {} is less than a window of {} (train.seq_len + 1)", key, max_tokens,
           window);
  std::int64_t end = documents->tokens();
  if (max_documents > 0 && max_documents < documents->count()) {
    end = documents->start(max_documents);
  }
  if (max_tokens > 0) {
    end = std::min(end, max_tokens / window * window);
  }
  return end == documents->tokens() ? documents : std::make_shared<Stretch>(std::move(documents), 0, end);
}

DocumentsPtr take_side(DocumentsPtr documents, double share, Side side, std::int64_t window) {
  std::vector<std::int64_t> mine;
  std::int64_t held_ids = 0;
  for (std::int64_t i = 0; i < documents->count(); ++i) {
    const bool held = held_out(documents->text_hash(i), share);
    held_ids += held ? documents->length(i) : 0;
    if (held == (side == Side::held_out)) {
      mine.push_back(i);
    }
  }
  if (held_ids >= window && documents->tokens() - held_ids >= window) {
    return std::make_shared<Subset>(std::move(documents), std::move(mine));
  }
  return cut_tail(std::move(documents), share, side, window);
}

}  // namespace kf
