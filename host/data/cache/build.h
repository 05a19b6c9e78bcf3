#pragma once
// Tokenizing a source into shards, in parallel. What is written does not depend on the number of threads.
//
// A unit of work (plan.h) is read by one thread, which hands batches of documents to a queue and writes their ids in order. A batch is
// encoded by whoever comes first: a thread that has no unit of its own, or the reader itself when it needs the ids. So one large file that
// cannot be split keeps all threads busy, too, and memory stays flat: a reader is only a few batches ahead.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/cache/encode.h"
#include "data/cache/manifest.h"
#include "data/cache/sources.h"

namespace kf::cache {

struct BuildJob {
  const SourceFiles* files = nullptr;
  const std::vector<HashedFile>* hashed = nullptr;  // of the files; they must still be so when a shard is done
  ReadOptions read;
  EncodeRules encode;
  /// Changes the text of a document; false drops it. Called by the calling thread only. Empty for none.
  std::function<bool(std::string&)> transform;
  bool wide = false;               // ids of 32 bits
  std::int64_t threads = 0;        // 0: the calling thread alone
  std::int64_t unit_bytes = 0;     // of a shard's source
  std::int64_t max_documents = 0;  // stop when there are so many; 0 for all
  std::int64_t max_tokens = 0;
};

/// The shards, in order, in `folder`, where finished ones of an earlier build are kept. With limits there may be more documents and tokens
/// than they say, never fewer if there are more. Throws what readers, tokenizers and transforms throw, Code::data for a file that changed,
/// and Code::other on a request to stop.
std::vector<Shard> build_shards(const BuildJob& job, const fs::path& folder);

}  // namespace kf::cache
