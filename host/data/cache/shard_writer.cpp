#include "data/cache/shard_writer.h"

#include <algorithm>

#include "core/error.h"

namespace kf::cache {

ShardWriter::ShardWriter(const fs::path& folder, std::size_t number, bool wide, bool mask)
    : wide_(wide),
      ids_(folder / shard_file("ids", number), wide ? "<u4" : "<u2"),
      ends_(folder / shard_file("ends", number), "<i8"),
      hashes_(folder / shard_file("hashes", number), "<u8") {
  if (mask) {
    mask_.emplace(folder / shard_file("mask", number), "|u1");
  }
}

void ShardWriter::add(const IdBatch& batch) {
  add_ids(batch.ids);
  if (mask_) {
    mask_->append(batch.mask.data(), batch.mask.size());
  }
  for (std::size_t i = 0; i < batch.lengths.size(); ++i) {
    const Counts document{1, batch.lengths[i], batch.text_bytes[i]};
    shard_.counts += document;
    counts_of(batch.files[i]) += document;
    ends_.append(shard_.counts.tokens);
  }
  hashes_.append(batch.hashes.data(), batch.hashes.size());
  shard_.notes.empty += batch.empty;
  shard_.notes.special_names += batch.special_names;
  shard_.max_id = std::max(shard_.max_id, batch.max_id);
}

void ShardWriter::add_ids(const std::vector<std::uint32_t>& ids) {
  if (wide_) {
    ids_.append(ids.data(), ids.size());
    return;
  }
  constexpr std::size_t kStep = std::size_t{1} << 16;  // one document may be as long as memory allows
  for (std::size_t from = 0; from < ids.size(); from += kStep) {
    narrow_.assign(std::min(kStep, ids.size() - from), 0);
    for (std::size_t i = 0; i < narrow_.size(); ++i) {
      const std::uint32_t id = ids[from + i];
      KF_CHECK(id <= UINT16_MAX, Code::data, "the id {} does not fit into 16 bits: the tokenizer says it has fewer ids than it gives", id);
      narrow_[i] = static_cast<std::uint16_t>(id);
    }
    ids_.append(narrow_.data(), narrow_.size());
  }
}

Counts& ShardWriter::counts_of(std::size_t file) {
  if (shard_.files.empty() || shard_.files.back().first != file) {  // documents come file by file
    shard_.files.emplace_back(file, Counts{});
  }
  return shard_.files.back().second;
}

Shard ShardWriter::finish(std::vector<Piece> pieces, std::int64_t dropped, std::int64_t skipped, std::vector<std::string> reasons) {
  reasons.resize(std::min(reasons.size(), static_cast<std::size_t>(skipped)));
  shard_.pieces = std::move(pieces);
  shard_.notes.dropped = dropped;
  shard_.notes.skipped = skipped;
  shard_.notes.skipped_reasons = std::move(reasons);
  shard_.ids = ids_.finish();
  shard_.ends = ends_.finish();
  shard_.hashes = hashes_.finish();
  if (mask_) {
    shard_.mask = mask_->finish();
  }
  return shard_;
}

bool is_there(const fs::path& folder, std::size_t number, const Shard& shard) {
  const auto fits = [&](const char* what, const ArrayInfo& info) {
    std::error_code missing;
    const auto size = fs::file_size(folder / shard_file(what, number), missing);
    return !missing && static_cast<std::int64_t>(size) == info.bytes();
  };
  return fits("ids", shard.ids) && fits("ends", shard.ends) && fits("hashes", shard.hashes) &&
         (shard.mask.descr.empty() || fits("mask", shard.mask));
}

void remove_shard(const fs::path& folder, std::size_t number) {
  std::error_code ignored;
  for (const char* what : {"ids", "ends", "hashes", "mask"}) {
    fs::remove(folder / shard_file(what, number), ignored);
  }
  fs::remove(folder / (shard_file("shard", number) + ".json"), ignored);
}

}  // namespace kf::cache
