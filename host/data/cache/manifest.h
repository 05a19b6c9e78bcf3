#pragma once
// cache.json: what a cache was made from, what is in it, and the files that hold it.

#include <cstdint>
#include <string>
#include <vector>

#include "core/fs.h"
#include "data/cache/array.h"
#include "data/cache/key.h"

namespace kf::cache {

/// Of a source's file, or of all.
struct Counts {
  std::int64_t documents = 0;
  std::int64_t tokens = 0;
  std::int64_t text_bytes = 0;
  Counts& operator+=(const Counts& other);
  friend bool operator==(const Counts&, const Counts&) = default;
};

/// What is worth telling a user about the documents.
struct Notes {
  std::int64_t empty = 0;                    // documents without text
  std::int64_t dropped = 0;                  // by transforms
  std::int64_t special_names = 0;            // names of special tokens in the text
  std::int64_t skipped = 0;                  // broken records (data.on_error = "skip"),
  std::vector<std::string> skipped_reasons;  // the first of them
  Notes& operator+=(const Notes& other);
  friend bool operator==(const Notes&, const Notes&) = default;
};

/// A stretch of a source's file.
struct Piece {
  std::size_t file = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  friend bool operator==(const Piece&, const Piece&) = default;
};

/// Documents that were written together: ids-00000.npy, ends-00000.npy, hashes-00000.npy and, with a mask, mask-00000.npy.
struct Shard {
  std::vector<Piece> pieces;                          // what it was made from
  std::vector<std::pair<std::size_t, Counts>> files;  // by number of the source's file
  Counts counts;
  Notes notes;
  std::int64_t max_id = -1;
  ArrayInfo ids;     // uint16 or uint32
  ArrayInfo ends;    // int64: behind each document's last id, from the shard's start
  ArrayInfo hashes;  // uint64: hash64 of each document's text
  ArrayInfo mask;    // uint8: 1 where the id counts for the loss; empty descr without a mask
  friend bool operator==(const Shard&, const Shard&) = default;
};

struct Manifest {
  std::string key;
  KeyInputs parts;
  Counts counts;
  Notes notes;
  std::vector<Counts> per_source;  // one for each of parts.sources
  std::vector<Shard> shards;
};

/// "ids-00012.npy"
std::string shard_file(const char* what, std::size_t number);

std::string to_json(const Shard& shard);
/// Throws Code::data naming `file` when the text is no such JSON.
Shard shard_from_json(const std::string& text, const fs::path& file);

/// One line a source and a shard.
std::string to_json(const Manifest& manifest);
Manifest manifest_from_json(const std::string& text, const fs::path& file);

}  // namespace kf::cache
