#pragma once
// The token cache: a source of text is tokenized once, later runs map what was written.
//
//   <cache_dir>/<key>/cache.json, ids-00000.npy, ends-00000.npy, hashes-00000.npy    a finished cache; never changed
//   <cache_dir>/<key>.part/                                                          one that is being built, or whose build was killed
//   <cache_dir>/<key>.lock                                                           held by the one who builds it
//   <cache_dir>/sources/<id>.txt                                                     what was known of a source's files (sources.h)
//
// The key follows from what the source's files hold, the tokenizer and the options (key.h). Nothing here depends on places.

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "core/error.h"
#include "data/cache/build.h"
#include "data/cache/cached_documents.h"

namespace kf::cache {

struct CacheRequest {
  fs::path dir;  // data.cache_dir resolved
  const SourceFiles* files = nullptr;
  std::string source;  // "data.dataset_path = \"corpus\"": for messages
  ReadOptions read;
  EncodeRules encode;  // without bos, eos and mask they are what the options say already
  std::string tokenizer_hash;
  std::string tokenizer_name;                  // "bytes", "tokenizers/gpt2.json": for people
  std::map<std::string, std::string> options;  // by key of the settings, as in cache.json
  std::function<bool(std::string&)> transform;
  std::int64_t threads = 0;
  std::int64_t max_documents = 0;
  std::int64_t max_tokens = 0;
  std::int64_t unit_bytes = 0;  // 0: by the source's size (plan.h)
  bool build = true;            // false: a cache that is not there is an error that says how to build it
};

/// Text that is not in the cache, of a request that must not build it.
class NotTokenized final : public Error {
 public:
  using Error::Error;
};

struct OpenedCache {
  std::shared_ptr<const CachedDocuments> documents;
  bool built = false;  // by this call
};

/// Opens the cache, building it first where there is none, where what is there is damaged, or where a killed build left parts. Says what it
/// does, and why a source that was cached before is tokenized again. Throws Code::data; what a failed build leaves is never taken for
/// whole.
OpenedCache open_cache(const CacheRequest& request);

/// data.cache_dir, else $KF_CACHE_DIR, else .kf-cache below the working folder.
fs::path cache_folder(const std::string& setting);

}  // namespace kf::cache
