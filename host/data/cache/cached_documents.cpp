#include "data/cache/cached_documents.h"

#include <algorithm>

#include "core/digest.h"
#include "core/error.h"

namespace kf::cache {
namespace {

template <class T>
std::int64_t copy_widened(const MappedArray& ids, std::int64_t from, std::span<std::int64_t> out) {
  const std::byte* source = ids.values() + static_cast<std::size_t>(from) * sizeof(T);
  std::int64_t most = -1;
  for (std::size_t i = 0; i < out.size(); ++i) {
    T value;
    std::memcpy(&value, source + i * sizeof(T), sizeof(T));
    out[i] = static_cast<std::int64_t>(value);
    most = std::max(most, out[i]);
  }
  return most;
}

/// Of the ids and their borders, whatever shards they lie in and wherever those lie.
std::string content_of(const Manifest& manifest) {
  Digest digest;
  for (const Shard& shard : manifest.shards) {
    digest.add(shard.ids.hash);
    digest.add(shard.ends.hash);
    digest.add(shard.mask.hash);
  }
  return digest.hex();
}

}  // namespace

CachedDocuments::CachedDocuments(fs::path folder, Manifest manifest, std::string description)
    : folder_(std::move(folder)),
      in_use_(folder_),
      manifest_(std::move(manifest)),
      description_(std::move(description)),
      fingerprint_(content_of(manifest_)) {
  shards_.reserve(manifest_.shards.size());
  for (std::size_t i = 0; i < manifest_.shards.size(); ++i) {
    const Shard& shard = manifest_.shards[i];
    shards_.push_back({MappedArray(folder_ / shard_file("ids", i), shard.ids), MappedArray(folder_ / shard_file("ends", i), shard.ends),
                       MappedArray(folder_ / shard_file("hashes", i), shard.hashes), nullptr});
    if (!shard.mask.descr.empty()) {
      shards_.back().mask = std::make_unique<MappedArray>(folder_ / shard_file("mask", i), shard.mask);
    }
    KF_CHECK((shards_.front().mask == nullptr) == (shards_.back().mask == nullptr), Code::data, "{}: some shards have a mask, others none",
             folder_);
    first_document_.push_back(first_document_.back() + shard.counts.documents);
    first_token_.push_back(first_token_.back() + shard.counts.tokens);
  }
}

std::size_t CachedDocuments::shard_of(const std::vector<std::int64_t>& firsts, std::int64_t index) const {
  return static_cast<std::size_t>(std::upper_bound(firsts.begin(), firsts.end(), index) - firsts.begin()) - 1;
}

std::int64_t CachedDocuments::start(std::int64_t index) const {
  KF_CHECK(index >= 0 && index <= count(), Code::data, "document {} asked for, there are {}", index, count());
  if (index == count()) {
    return tokens();
  }
  const std::size_t shard = shard_of(first_document_, index);
  const std::int64_t within = index - first_document_[shard];
  const std::int64_t before = within == 0 ? 0 : shards_[shard].ends.at<std::int64_t>(within - 1);
  const std::int64_t tokens = manifest_.shards[shard].counts.tokens;
  KF_CHECK(before >= 0 && before <= tokens, Code::data,
           "{} is damaged: document {} begins at {} of {} tokens; `kf-host data verify` says more", folder_ / shard_file("ends", shard),
           within, before, tokens);
  return first_token_[shard] + before;
}

void CachedDocuments::check(std::int64_t first, std::size_t count) const {
  KF_CHECK(first >= 0 && first <= tokens() && static_cast<std::int64_t>(count) <= tokens() - first, Code::data,
           "ids {} to {} asked for, the documents have {}", first, first + static_cast<std::int64_t>(count), tokens());
}

void CachedDocuments::copy_ids(std::size_t shard, std::int64_t from, std::span<std::int64_t> out) const {
  const MappedArray& ids = shards_[shard].ids;
  const std::int64_t most =
      ids.info().descr == "<u2" ? copy_widened<std::uint16_t>(ids, from, out) : copy_widened<std::uint32_t>(ids, from, out);
  KF_CHECK(most <= manifest_.shards[shard].max_id, Code::data,
           "{} is damaged: it has the id {}, and the largest that was written is {}; `kf-host data verify` says more",
           folder_ / shard_file("ids", shard), most, manifest_.shards[shard].max_id);
}

void CachedDocuments::read(std::int64_t first, std::span<std::int64_t> out) const {
  check(first, out.size());
  for (std::size_t done = 0; done < out.size();) {
    const std::int64_t at = first + static_cast<std::int64_t>(done);
    const std::size_t shard = shard_of(first_token_, at);
    const std::size_t take = std::min(out.size() - done, static_cast<std::size_t>(first_token_[shard + 1] - at));
    copy_ids(shard, at - first_token_[shard], out.subspan(done, take));
    done += take;
  }
}

void CachedDocuments::read_mask(std::int64_t first, std::span<std::uint8_t> out) const {
  if (!has_mask()) {
    Documents::read_mask(first, out);
    return;
  }
  check(first, out.size());
  for (std::size_t done = 0; done < out.size();) {
    const std::int64_t at = first + static_cast<std::int64_t>(done);
    const std::size_t shard = shard_of(first_token_, at);
    const std::size_t take = std::min(out.size() - done, static_cast<std::size_t>(first_token_[shard + 1] - at));
    std::memcpy(out.data() + done, shards_[shard].mask->values() + (at - first_token_[shard]), take);
    done += take;
  }
}

std::uint64_t CachedDocuments::text_hash(std::int64_t index) const {
  KF_CHECK(index >= 0 && index < count(), Code::data, "document {} asked for, there are {}", index, count());
  const std::size_t shard = shard_of(first_document_, index);
  return shards_[shard].hashes.at<std::uint64_t>(index - first_document_[shard]);
}

void CachedDocuments::check_vocabulary(std::int64_t vocab_size) const {
  std::int64_t most = -1;
  for (const Shard& shard : manifest_.shards) {
    most = std::max(most, shard.max_id);
  }
  if (most < vocab_size) {
    return;
  }
  for (std::int64_t document = 0; document < count(); ++document) {
    std::vector<std::int64_t> ids(static_cast<std::size_t>(length(document)));
    read(start(document), ids);
    const auto bad = std::find_if(ids.begin(), ids.end(), [&](std::int64_t id) { return id >= vocab_size; });
    KF_CHECK(bad == ids.end(), Code::data,
             "{}: document {} has the id {} at place {}, and model.vocab_size is {}; set model.vocab_size to {} or more", folder_, document,
             *bad, bad - ids.begin(), vocab_size, most + 1);
  }
}

std::vector<std::string> CachedDocuments::faults() const {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    const auto intact = [&](const char* what, const MappedArray& array) {
      if (!array.intact()) {
        out.push_back(format("{}: the checksum is not that of what was written", folder_ / shard_file(what, i)));
      }
    };
    intact("ids", shards_[i].ids);
    intact("ends", shards_[i].ends);
    intact("hashes", shards_[i].hashes);
    if (shards_[i].mask) {
      intact("mask", *shards_[i].mask);
    }
    border_faults(i, out);
  }
  return out;
}

void CachedDocuments::border_faults(std::size_t i, std::vector<std::string>& out) const {
  const Arrays& shard = shards_[i];
  std::int64_t before = 0;
  for (std::int64_t document = 0; document < shard.ends.info().count; ++document) {
    const auto end = shard.ends.at<std::int64_t>(document);
    if (end < before || end > shard.ids.info().count) {
      out.push_back(format("{}: document {} ends at {}, the one before it at {}, and there are {} tokens", folder_ / shard_file("ends", i),
                           document, end, before, shard.ids.info().count));
      return;
    }
    before = end;
  }
  if (before != shard.ids.info().count) {
    out.push_back(format("{}: the last document ends at {} of {} tokens", folder_ / shard_file("ends", i), before, shard.ids.info().count));
  }
  std::vector<std::int64_t> ids(1 << 16);
  for (std::int64_t at = 0; at < shard.ids.info().count; at += static_cast<std::int64_t>(ids.size())) {
    ids.resize(static_cast<std::size_t>(std::min<std::int64_t>(1 << 16, shard.ids.info().count - at)));
    try {
      copy_ids(i, at, ids);
    } catch (const Error&) {
      const std::int64_t limit = manifest_.shards[i].max_id;
      const auto bad = std::find_if(ids.begin(), ids.end(), [&](std::int64_t id) { return id > limit; });
      out.push_back(format("{}: token {} is the id {}, and the largest that was written is {}", folder_ / shard_file("ids", i),
                           at + (bad - ids.begin()), *bad, limit));
      return;
    }
  }
}

}  // namespace kf::cache
