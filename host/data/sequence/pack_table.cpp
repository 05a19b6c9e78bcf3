#include "data/sequence/pack_table.h"

#include <algorithm>
#include <limits>

#include "core/error.h"

namespace kf {
namespace {

/// The fullest row that still has room: rows by the room they have, found through a tree of maxima over rooms 0..seq_len.
class BestRows {
 public:
  explicit BestRows(std::int64_t seq_len, std::size_t /*pieces*/) : rows_(static_cast<std::size_t>(seq_len) + 1) {
    while (leaves_ < rows_.size()) {
      leaves_ *= 2;
    }
    any_.assign(2 * leaves_, false);
  }

  /// A row with the least room of `length` or more, taken out; -1 when there is none.
  std::int64_t take(std::int64_t length) {
    std::size_t node = static_cast<std::size_t>(length) + leaves_;
    while (!any_[node]) {  // up until something lies to the right, then down to the leftmost of it
      while (node % 2 == 1) {
        node /= 2;
      }
      if (node == 0) {
        return -1;
      }
      ++node;
    }
    while (node < leaves_) {
      node = any_[2 * node] ? 2 * node : 2 * node + 1;
    }
    std::vector<std::int64_t>& rows = rows_[node - leaves_];
    const std::int64_t row = rows.back();
    rows.pop_back();
    mark(node, !rows.empty());
    return row;
  }

  void put(std::int64_t row, std::int64_t room) {
    rows_[static_cast<std::size_t>(room)].push_back(row);
    mark(static_cast<std::size_t>(room) + leaves_, true);
  }

 private:
  void mark(std::size_t node, bool any) {
    for (any_[node] = any; node > 1; node /= 2) {
      any_[node / 2] = any_[node] || any_[node ^ 1];
    }
  }

  std::size_t leaves_ = 1;
  std::vector<char> any_;  // a heap: the children of node i are 2 i and 2 i + 1
  std::vector<std::vector<std::int64_t>> rows_;
};

/// The first row that has room: a tree of maxima over the rooms of rows, as many as there are pieces at most.
class FirstRows {
 public:
  FirstRows(std::int64_t /*seq_len*/, std::size_t pieces) {
    while (leaves_ < pieces) {
      leaves_ *= 2;
    }
    most_.assign(2 * leaves_, -1);
  }

  /// The first row with room of `length` or more, taken out; -1 when there is none.
  std::int64_t take(std::int64_t length) {
    if (most_[1] < length) {
      return -1;
    }
    std::size_t node = 1;
    while (node < leaves_) {
      node = most_[2 * node] >= length ? 2 * node : 2 * node + 1;
    }
    set(node, -1);
    return static_cast<std::int64_t>(node - leaves_);
  }

  void put(std::int64_t row, std::int64_t room) { set(static_cast<std::size_t>(row) + leaves_, room); }

 private:
  void set(std::size_t node, std::int64_t room) {
    for (most_[node] = room; node > 1; node /= 2) {
      most_[node / 2] = std::max(most_[node], most_[node ^ 1]);
    }
  }

  std::size_t leaves_ = 1;
  std::vector<std::int64_t> most_;  // a heap: the children of node i are 2 i and 2 i + 1
};

}  // namespace

Fit fit_named(std::string_view pack_method) {
  if (pack_method == "best_fit") {
    return Fit::best;
  }
  return pack_method == "first_fit" ? Fit::first : Fit::none;
}

PackTable::PackTable(const Documents& documents, const PackOptions& options) : seq_len_(options.seq_len) {
  KF_CHECK(seq_len_ > 0 && seq_len_ <= std::numeric_limits<std::int32_t>::max(), Code::data, "train.seq_len ({}) must be 1 to 2^31 - 1",
           seq_len_);
  std::vector<PackPiece> group;
  for (std::int64_t document = 0; document < documents.count(); ++document) {
    std::int64_t start = documents.start(document);
    std::int64_t left = documents.start(document + 1) - start - 1;  // inputs: each has a label behind it
    if (options.truncate && left > seq_len_) {
      truncated_ += left - seq_len_;
      left = seq_len_;
    }
    for (; left > 0; left -= seq_len_, start += seq_len_) {
      group.push_back({start, std::min(left, seq_len_)});
    }
    if (static_cast<std::int64_t>(group.size()) >= options.look_ahead) {
      pack_group(group, options);
    }
  }
  pack_group(group, options);
  KF_CHECK(rows() > 0, Code::data, "{}: none of {} documents has an id to read and one to predict", documents.describe(),
           documents.count());
}

void PackTable::add_row(std::span<const PackPiece> pieces) {
  for (const PackPiece& piece : pieces) {
    starts_.push_back(piece.start);
    lengths_.push_back(static_cast<std::int32_t>(piece.length));
    inputs_ += piece.length;
  }
  row_starts_.push_back(static_cast<std::int64_t>(starts_.size()));
}

void PackTable::pack_group(std::vector<PackPiece>& group, const PackOptions& options) {
  switch (options.fit) {
    case Fit::none:
      for (const PackPiece& piece : group) {
        add_row({&piece, 1});
      }
      break;
    case Fit::first: pack_into<FirstRows>(group, options); break;
    case Fit::best:
      std::stable_sort(group.begin(), group.end(), [](const PackPiece& a, const PackPiece& b) { return a.length > b.length; });
      pack_into<BestRows>(group, options);
      break;
  }
  group.clear();
}

template <class Bins>
void PackTable::pack_into(const std::vector<PackPiece>& group, const PackOptions& options) {
  Bins bins(seq_len_, group.size());
  std::vector<std::vector<PackPiece>> rows;
  std::vector<std::int64_t> rooms;
  for (const PackPiece& piece : group) {
    std::int64_t row = bins.take(piece.length);
    if (row < 0) {
      row = static_cast<std::int64_t>(rows.size());
      rows.emplace_back();
      rooms.push_back(seq_len_);
    }
    const auto at = static_cast<std::size_t>(row);
    rows[at].push_back(piece);
    rooms[at] -= piece.length;
    const bool more = options.max_segments == 0 || static_cast<std::int64_t>(rows[at].size()) < options.max_segments;
    if (more && rooms[at] > 0) {
      bins.put(row, rooms[at]);
    }
  }
  const auto earlier = [](const PackPiece& a, const PackPiece& b) { return a.start < b.start; };
  for (std::vector<PackPiece>& row : rows) {
    std::sort(row.begin(), row.end(), earlier);
  }
  std::sort(rows.begin(), rows.end(), [&](const auto& a, const auto& b) { return earlier(a.front(), b.front()); });
  for (const std::vector<PackPiece>& row : rows) {
    add_row(row);
  }
}

void PackTable::row(std::int64_t index, std::vector<PackPiece>& out) const {
  KF_CHECK(index >= 0 && index < rows(), Code::data, "sequence {} asked for, there are {}", index, rows());
  const auto at = static_cast<std::size_t>(index);
  for (std::int64_t i = row_starts_[at]; i < row_starts_[at + 1]; ++i) {
    out.push_back({starts_[static_cast<std::size_t>(i)], lengths_[static_cast<std::size_t>(i)]});
  }
}

std::string PackTable::describe() const {
  const double share = static_cast<double>(inputs_) / (static_cast<double>(rows()) * static_cast<double>(seq_len_));
  return format("{} sequences, {} % full{}", grouped(rows()), fixed(100 * share, 1),
                truncated_ > 0 ? ", " + grouped(truncated_) + " tokens cut off" : "");
}

}  // namespace kf
