#include "data/sequence/token_documents.h"

#include <algorithm>
#include <iterator>

#include "core/digest.h"
#include "core/error.h"
#include "data/file/megatron.h"

namespace kf {

TokenDocuments::TokenDocuments(const std::vector<fs::path>& files, const fs::path& root, std::optional<std::int64_t> eos,
                               const TokenFileOptions& options)
    : files_(files, root, 1, options) {
  for (std::size_t i = 0; i < files_.files().size(); ++i) {
    find_documents(files_.files()[i], files_.cumulative()[i], eos);
  }
}

void TokenDocuments::find_documents(const TokenFile& file, std::int64_t begin, std::optional<std::int64_t> eos) {
  if (const std::optional<MegatronIndex> index = find_megatron_index(file.path())) {
    std::transform(index->document_starts.begin() + 1, index->document_starts.end(), std::back_inserter(starts_),
                   [&](std::int64_t start) { return begin + start; });
    return;
  }
  KF_CHECK(eos.has_value(), Code::data, "{}: a token file does not say which id ends a document; set data.eos_id", file.path());
  std::vector<std::int64_t> ids(65536);
  for (std::int64_t at = 0; at < file.tokens();) {
    ids.resize(static_cast<std::size_t>(std::min<std::int64_t>(65536, file.tokens() - at)));
    file.read(at, ids);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] == *eos) {
        starts_.push_back(begin + at + static_cast<std::int64_t>(i) + 1);
      }
    }
    at += static_cast<std::int64_t>(ids.size());
  }
  if (starts_.back() < begin + file.tokens()) {
    starts_.push_back(begin + file.tokens());
  }
}

void TokenDocuments::read(std::int64_t first, std::span<std::int64_t> out) const {
  KF_CHECK(first >= 0 && first <= tokens() && static_cast<std::int64_t>(out.size()) <= tokens() - first, Code::data,
           "ids {} to {} asked for, the files have {}", first, first + static_cast<std::int64_t>(out.size()), tokens());
  const std::vector<std::int64_t>& ends = files_.cumulative();
  for (std::size_t done = 0; done < out.size();) {
    const auto file = static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), first) - ends.begin() - 1);
    const auto count =
        static_cast<std::size_t>(std::min<std::int64_t>(ends[file + 1] - first, static_cast<std::int64_t>(out.size() - done)));
    files_.files()[file].read(first - ends[file], out.subspan(done, count));
    done += count;
    first += static_cast<std::int64_t>(count);
  }
}

std::uint64_t TokenDocuments::text_hash(std::int64_t index) const {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(length(index)));
  read(start(index), ids);
  return hash64({reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(std::int64_t)});
}

}  // namespace kf
