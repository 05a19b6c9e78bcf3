#pragma once
// The text of a source as ids, by [data]: mapped where bytes are the ids, else out of the token cache, which is built when it is missing.

#include <memory>
#include <optional>
#include <vector>

#include "data/documents/data_record.h"
#include "data/documents/documents.h"
#include "data/read/reader.h"
#include "data/source/source.h"

namespace kf {

namespace cache {
class CachedDocuments;
}

struct TokenizedText {
  std::shared_ptr<const Documents> documents;            // all that [data] and the source's own limits let through; sides of a hold-out are
                                                         // taken from them
  std::shared_ptr<const cache::CachedDocuments> cached;  // what they come from; null where nothing is cached
  bool built = false;                                    // the cache was made by this call
  std::optional<std::int64_t> eos;                       // ends each document; unset where nothing does
  std::vector<FilePrint> prints = {};                    // of the files, where there are not too many
};

/// `files` are text. Throws what readers, tokenizers, transforms and the cache throw, and Code::data when there is no document.
TokenizedText open_tokenized_text(const SourceFiles& files, const SourceSpec& spec, const SourceOptions& options);

}  // namespace kf
