#include "data/sequence/packed_dataset.h"

#include <algorithm>
#include <vector>

#include "core/error.h"
#include "data/sequence/packing.h"

namespace kf {

PackedDataset::PackedDataset(std::shared_ptr<const Documents> documents, const PackOptions& options)
    : documents_(std::move(documents)), table_(*documents_, options) {}

void PackedDataset::get(std::int64_t /*index*/, std::span<std::int64_t> /*window*/) const {
  fail(Code::other, "packed documents are read as rows, not as windows");
}

void PackedDataset::row(std::int64_t index, std::optional<std::int64_t> /*eos*/, const RowView& out) const {
  std::vector<PackPiece> pieces;
  table_.row(index, pieces);
  std::fill(out.tokens.begin(), out.tokens.end(), kPaddingToken);
  std::fill(out.labels.begin(), out.labels.end(), kIgnore);
  std::fill(out.doc_ids.begin(), out.doc_ids.end(), kPadding);
  std::vector<std::int64_t> ids;
  std::vector<std::uint8_t> counts;
  std::size_t at = 0;
  for (std::size_t number = 0; number < pieces.size(); ++number) {
    const auto length = static_cast<std::size_t>(pieces[number].length);
    ids.resize(length + 1);  // the id behind the last input is its label
    documents_->read(pieces[number].start, ids);
    split_window(ids, out.tokens.subspan(at, length), out.labels.subspan(at, length));
    if (documents_->has_mask()) {
      counts.resize(length);
      documents_->read_mask(pieces[number].start + 1, counts);
      for (std::size_t i = 0; i < length; ++i) {
        out.labels[at + i] = counts[i] != 0 ? out.labels[at + i] : kIgnore;
      }
    }
    std::fill_n(out.doc_ids.begin() + static_cast<std::ptrdiff_t>(at), length, static_cast<std::int64_t>(number));
    at += length;
  }
}

}  // namespace kf
