#include "parallel/sequence_cut.h"

#include "core/error.h"
#include "parallel/rows.h"

namespace kf {

SequenceOrder sequence_order(std::string_view name) { return name == "contiguous" ? SequenceOrder::contiguous : SequenceOrder::zigzag; }

SequenceCut::SequenceCut(std::int64_t length, std::int64_t ranks, SequenceOrder order)
    : length_(length), pieces_(static_cast<std::size_t>(ranks)), rows_(static_cast<std::size_t>(ranks), 0) {
  const std::int64_t parts = order == SequenceOrder::zigzag ? 2 * ranks : ranks;
  KF_CHECK(
      length >= parts, Code::config,
      "sequences of {} positions cannot be cut into the {} pieces that {} ranks of distributed.cp have; use longer ones (train.seq_len), "
      "or a smaller distributed.cp",
      length, parts, ranks);
  const std::vector<std::int64_t> offsets = offsets_of(even_rows(length, parts));
  for (std::int64_t part = 0; part < parts; ++part) {
    const auto at = static_cast<std::size_t>(part);
    const auto rank = static_cast<std::size_t>(part < ranks ? part : parts - 1 - part);
    pieces_[rank].push_back({offsets[at], offsets[at + 1] - offsets[at]});
    rows_[rank] += pieces_[rank].back().size;
  }
}

}  // namespace kf
