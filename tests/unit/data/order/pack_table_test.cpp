// Packing: every label once, rows that are full, documents whole where they fit, the same table every time.

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "core/error.h"
#include "data/sequence/pack_table.h"

#include <catch2/catch.hpp>

namespace {

using kf::PackOptions;
using kf::PackPiece;
using kf::PackTable;

/// Documents of these lengths, their ids 0, 1, 2, ... over the whole stream.
kf::MemoryDocuments documents(const std::vector<std::int64_t>& lengths) {
  kf::MemoryDocuments out;
  std::int64_t next = 0;
  for (const std::int64_t length : lengths) {
    std::vector<std::int64_t> ids(static_cast<std::size_t>(length));
    for (std::int64_t& id : ids) {
      id = next++;
    }
    out.add(ids, 0);
  }
  return out;
}

std::vector<std::vector<PackPiece>> rows_of(const PackTable& table) {
  std::vector<std::vector<PackPiece>> out(static_cast<std::size_t>(table.rows()));
  for (std::int64_t row = 0; row < table.rows(); ++row) {
    table.row(row, out[static_cast<std::size_t>(row)]);
  }
  return out;
}

PackOptions options(std::int64_t seq_len, kf::Fit fit = kf::Fit::best) {
  PackOptions out;
  out.seq_len = seq_len;
  out.fit = fit;
  return out;
}

std::vector<std::int64_t> random_lengths(std::size_t count, double mean, unsigned seed) {
  std::mt19937 random(seed);
  std::lognormal_distribution<double> length(std::log(mean), 1.0);
  std::vector<std::int64_t> out;
  for (std::size_t i = 0; i < count; ++i) {
    out.push_back(static_cast<std::int64_t>(length(random)));
  }
  return out;
}

}  // namespace

TEST_CASE("packing: every label of every document is in exactly one sequence, and none crosses a border") {
  const std::vector<std::int64_t> lengths = random_lengths(3000, 60, 1);
  const kf::MemoryDocuments docs = documents(lengths);
  for (const kf::Fit fit : {kf::Fit::best, kf::Fit::first, kf::Fit::none}) {
    for (const std::int64_t look_ahead : {1, 10, 500, 1 << 20}) {
      PackOptions how = options(128, fit);
      how.look_ahead = look_ahead;
      const PackTable table(docs, how);
      std::vector<int> labels(static_cast<std::size_t>(docs.tokens()));
      for (const std::vector<PackPiece>& row : rows_of(table)) {
        std::int64_t filled = 0;
        for (const PackPiece& piece : row) {
          filled += piece.length;
          REQUIRE(docs.document_at(piece.start) == docs.document_at(piece.start + piece.length));
          for (std::int64_t i = 1; i <= piece.length; ++i) {
            ++labels[static_cast<std::size_t>(piece.start + i)];
          }
        }
        REQUIRE(filled <= 128);
        REQUIRE((fit != kf::Fit::none || row.size() == 1));
      }
      for (std::int64_t document = 0; document < docs.count(); ++document) {
        for (std::int64_t id = docs.start(document); id < docs.start(document + 1); ++id) {
          REQUIRE(labels[static_cast<std::size_t>(id)] == (id == docs.start(document) ? 0 : 1));
        }
      }
    }
  }
}

TEST_CASE("packing: best fit fills the sequences and cuts only what is too long") {
  const std::vector<std::int64_t> lengths = random_lengths(20'000, 200, 2);
  const kf::MemoryDocuments docs = documents(lengths);
  const PackTable table(docs, options(2048));
  std::int64_t needed = 0;
  for (const std::int64_t length : lengths) {
    needed += std::max<std::int64_t>(0, length - 1);
  }
  CHECK(table.inputs() == needed);
  CHECK(table.rows() <= (needed + 2047) / 2048 + 2);  // no two bins more than the least there can be
  std::map<std::int64_t, int> pieces;
  for (const std::vector<PackPiece>& row : rows_of(table)) {
    for (const PackPiece& piece : row) {
      ++pieces[docs.document_at(piece.start)];
    }
  }
  for (const auto& [document, count] : pieces) {
    REQUIRE(count == (docs.length(document) - 1 + 2047) / 2048);
  }
}

TEST_CASE("packing: the table is the same every time, and its sequences follow the documents") {
  const kf::MemoryDocuments docs = documents(random_lengths(5000, 50, 3));
  PackOptions how = options(256);
  how.look_ahead = 1000;
  const auto first = rows_of(PackTable(docs, how));
  const auto second = rows_of(PackTable(docs, how));
  REQUIRE(first.size() == second.size());
  const auto same = [](const PackPiece& a, const PackPiece& b) { return a.start == b.start && a.length == b.length; };
  std::int64_t farthest = 0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    REQUIRE(std::equal(first[i].begin(), first[i].end(), second[i].begin(), second[i].end(), same));
    for (const PackPiece& piece : first[i]) {
      farthest = std::max(farthest, docs.document_at(piece.start) - docs.document_at(first[i].front().start));
    }
  }
  CHECK(farthest <= 1000);  // the look-ahead bounds how far apart the documents of a sequence lie
}

TEST_CASE("packing: long documents are cut into pieces or lose their end") {
  const kf::MemoryDocuments docs = documents({51, 3, 1, 0, 33});
  const PackTable chunked(docs, options(32));
  CHECK(chunked.inputs() == 50 + 2 + 32);
  CHECK(chunked.rows() == 3);  // 32; 18 and 2; 32
  CHECK(chunked.truncated() == 0);
  PackOptions how = options(32);
  how.truncate = true;
  const PackTable cut(docs, how);
  CHECK(cut.inputs() == 32 + 2 + 32);
  CHECK(cut.truncated() == 18);
  CHECK_THAT(cut.describe(), Catch::Contains("3 sequences") && Catch::Contains("18 tokens cut off"));
}

TEST_CASE("packing: no sequence has more pieces than max_segments") {
  const kf::MemoryDocuments docs = documents(std::vector<std::int64_t>(100, 3));
  PackOptions how = options(64);
  CHECK(PackTable(docs, how).rows() == 4);  // 32 a row
  how.max_segments = 5;
  const PackTable table(docs, how);
  CHECK(table.rows() == 20);
  for (const std::vector<PackPiece>& row : rows_of(table)) {
    CHECK(row.size() == 5);
  }
}

TEST_CASE("packing: first fit puts each piece into the first sequence that has room, in the order of the documents") {
  // Inputs 5, 6, 3, 2, 4, 1 (a document has one id more) in sequences of 8: 5 3; 6 2; 4 1.
  const kf::MemoryDocuments docs = documents({6, 7, 4, 3, 5, 2});
  const PackTable table(docs, options(8, kf::Fit::first));
  const auto lengths = [](const PackTable& of) {
    std::vector<std::vector<std::int64_t>> out;
    for (const std::vector<PackPiece>& row : rows_of(of)) {
      out.emplace_back();
      for (const PackPiece& piece : row) {
        out.back().push_back(piece.length);
      }
    }
    return out;
  };
  CHECK(lengths(table) == std::vector<std::vector<std::int64_t>>{{5, 3}, {6, 2}, {4, 1}});
  PackOptions how = options(8, kf::Fit::first);
  how.max_segments = 1;
  CHECK(PackTable(docs, how).rows() == 6);
  // Against the rule spelled out, for many documents.
  const std::vector<std::int64_t> many = random_lengths(2000, 30, 7);
  std::vector<std::int64_t> rooms;
  for (const std::int64_t length : many) {
    for (std::int64_t left = length - 1; left > 0; left -= 64) {
      const std::int64_t piece = std::min<std::int64_t>(left, 64);
      const auto at = std::find_if(rooms.begin(), rooms.end(), [&](std::int64_t room) { return room >= piece; });
      at == rooms.end() ? rooms.push_back(64 - piece) : void(*at -= piece);
    }
  }
  CHECK(PackTable(documents(many), options(64, kf::Fit::first)).rows() == static_cast<std::int64_t>(rooms.size()));
}

TEST_CASE("packing: documents without anything to predict are refused") {
  CHECK_THROWS_WITH(PackTable(documents({1, 0, 1}), options(8)), Catch::Contains("none of 3 documents"));
}
