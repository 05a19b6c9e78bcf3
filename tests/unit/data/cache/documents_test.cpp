#include "data/documents/documents.h"

#include <catch2/catch.hpp>

#include "core/error.h"

using namespace kf;
using Ids = std::vector<std::int64_t>;

namespace {

MemoryDocuments three() {
  MemoryDocuments documents("three documents");
  documents.add(Ids{5, 6, 256}, 11);
  documents.add(Ids{}, 12);
  documents.add(Ids{7, 256}, 13);
  return documents;
}

Ids read(const Documents& documents, std::int64_t first, std::size_t count) {
  Ids out(count);
  documents.read(first, out);
  return out;
}

}  // namespace

TEST_CASE("documents: one stream of ids, each document a stretch of it") {
  const MemoryDocuments documents = three();
  CHECK(documents.count() == 3);
  CHECK(documents.tokens() == 5);
  CHECK(documents.start(3) == 5);
  CHECK(documents.length(0) == 3);
  CHECK(documents.length(1) == 0);
  CHECK(read(documents, 0, 5) == Ids{5, 6, 256, 7, 256});
  CHECK(read(documents, 2, 2) == Ids{256, 7});
  CHECK(documents.text_hash(2) == 13);
  CHECK(documents.document_at(0) == 0);
  CHECK(documents.document_at(2) == 0);
  CHECK(documents.document_at(3) == 2);  // never a document without ids
  CHECK(documents.document_at(4) == 2);
}

TEST_CASE("documents: reading outside of the stream is an error, not a read") {
  const MemoryDocuments documents = three();
  CHECK(read(documents, 5, 0).empty());
  CHECK_THROWS_WITH(read(documents, 3, 3), Catch::Contains("ids 3 to 6 asked for, the documents have 5"));
  CHECK_THROWS_AS(read(documents, -1, 2), Error);
  CHECK_THROWS_AS(documents.document_at(5), Error);
}

TEST_CASE("documents: where one has a mask, the ids of the others count") {
  MemoryDocuments documents = three();
  CHECK_FALSE(documents.has_mask());
  documents.add(Ids{1, 2}, 14, std::vector<std::uint8_t>{0, 1});
  documents.add(Ids{3}, 15);
  REQUIRE(documents.has_mask());
  std::vector<std::uint8_t> mask(8);
  documents.read_mask(0, mask);
  CHECK(mask == std::vector<std::uint8_t>{1, 1, 1, 1, 1, 0, 1, 1});
}

TEST_CASE("documents: the fingerprint knows ids, borders and the mask") {
  MemoryDocuments other;
  other.add(Ids{5, 6}, 11);
  other.add(Ids{256}, 12);
  other.add(Ids{7, 256}, 13);
  CHECK(three().fingerprint() == three().fingerprint());
  CHECK(three().fingerprint() != other.fingerprint());
}
