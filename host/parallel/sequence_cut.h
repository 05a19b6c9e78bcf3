#pragma once
// Which positions of a sequence a rank of context parallelism has: arithmetic alone.

#include <cstdint>
#include <string_view>
#include <vector>

namespace kf {

/// Neighbouring positions.
struct Span {
  std::int64_t begin = 0;
  std::int64_t size = 0;
  std::int64_t end() const { return begin + size; }
  bool operator==(const Span&) const = default;
};

/// zigzag: of 2 ranks pieces rank r has numbers r and 2 ranks - 1 - r, so that causal attention costs all ranks the same (the order of
/// Llama 3's training, Grattafiori et al. 2024, section 3.3.2). contiguous: piece r of as many as there are ranks.
enum class SequenceOrder { zigzag, contiguous };
/// distributed.cp_order.
SequenceOrder sequence_order(std::string_view name);

/// `length` positions over `ranks` ranks. Pieces are as even as can be (even_rows), so no length has to be a multiple of anything.
class SequenceCut {
 public:
  /// Throws Code::config where the length does not give every piece a position.
  SequenceCut(std::int64_t length, std::int64_t ranks, SequenceOrder order);

  std::int64_t length() const { return length_; }
  std::int64_t ranks() const { return static_cast<std::int64_t>(pieces_.size()); }
  /// Of a rank, ascending.
  const std::vector<Span>& pieces(std::int64_t rank) const { return pieces_.at(static_cast<std::size_t>(rank)); }
  /// How many positions each rank has.
  const std::vector<std::int64_t>& rows() const { return rows_; }

 private:
  std::int64_t length_;
  std::vector<std::vector<Span>> pieces_;
  std::vector<std::int64_t> rows_;
};

}  // namespace kf
