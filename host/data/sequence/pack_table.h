#pragma once
// Which stretches of documents make which sequence: the table of every data.pack_method but "concat".

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/documents/documents.h"

namespace kf {

/// `length` inputs of a sequence: ids [start, start + length) of the stream of documents. Their labels are the ids one later, of the same
/// document: the last id of a document is predicted and never an input, so it takes no place.
struct PackPiece {
  std::int64_t start = 0;
  std::int64_t length = 0;
};

/// Which sequence a piece goes to: the one where it leaves least room, the first one that has room, or one of its own.
enum class Fit { best, first, none };
/// Of data.pack_method: "best_fit", "first_fit", "pad".
Fit fit_named(std::string_view pack_method);

struct PackOptions {
  std::int64_t seq_len = 0;
  Fit fit = Fit::best;
  std::int64_t max_segments = 0;  // pieces of one sequence at most; 0: any number
  bool truncate = false;          // of documents longer than a sequence only the beginning is read; false: they are cut into several pieces
  std::int64_t look_ahead = 65536;  // pieces that are packed together
};

/// Best-fit-decreasing over groups of documents (Ding et al., "Fewer Truncations Improve Language Modeling", 2024): in each group the
/// longest pieces come first, and each goes where it leaves least room. First fit takes the pieces as the documents come and puts each into
/// the first sequence of its group that has room, as MaxText's packing does: a sequence holds documents that were near each
/// other. Groups follow each other in the order of the documents, and so do the sequences of a group, by their first piece: neighbours in
/// the table are neighbours on disk. The table is a function of the lengths
/// and the options alone; it takes 16 to 20 bytes a document and less than a second a million documents, and is made anew at every start.
class PackTable {
 public:
  /// Throws Code::data when no document has two ids.
  PackTable(const Documents& documents, const PackOptions& options);

  std::int64_t rows() const { return static_cast<std::int64_t>(row_starts_.size()) - 1; }
  std::int64_t pieces() const { return static_cast<std::int64_t>(starts_.size()); }
  /// Appends the pieces of a sequence, in the order in which they lie in it, to `out`.
  void row(std::int64_t index, std::vector<PackPiece>& out) const;
  /// Inputs that are not padding, over all sequences.
  std::int64_t inputs() const { return inputs_; }
  /// Inputs that truncation left out.
  std::int64_t truncated() const { return truncated_; }
  /// "12,345 sequences, 98.7 % full"
  std::string describe() const;

 private:
  void add_row(std::span<const PackPiece> pieces);
  void pack_group(std::vector<PackPiece>& group, const PackOptions& options);
  template <class Bins>
  void pack_into(const std::vector<PackPiece>& group, const PackOptions& options);

  std::int64_t seq_len_;
  std::vector<std::int64_t> starts_;
  std::vector<std::int32_t> lengths_;
  std::vector<std::int64_t> row_starts_{0};
  std::int64_t inputs_ = 0;
  std::int64_t truncated_ = 0;
};

}  // namespace kf
