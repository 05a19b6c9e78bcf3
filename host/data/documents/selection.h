#pragma once
// Some of the documents: the first ones up to a limit, and the two sides of a hold-out.

#include <cstdint>
#include <memory>

#include "data/documents/documents.h"

namespace kf {

using DocumentsPtr = std::shared_ptr<const Documents>;

/// The first `max_documents`, of these the first `max_tokens` ids rounded down to whole windows (the last document may be cut); 0 for no
/// limit. Throws Code::data naming `key` (of max_tokens) when it is less than a window.
DocumentsPtr first_documents(DocumentsPtr documents, std::int64_t max_documents, std::int64_t max_tokens, std::int64_t window,
                             const std::string& key);

/// Which side of the hold-out to read.
enum class Side { training, held_out };

/// The documents of one side. A document is held out by the hash of its text, so neither order nor other documents matter. Where that
/// leaves one side without `window` ids (few or long documents), the last `share` of all ids is held out instead (a document may be cut),
/// and the log says so. Throws Code::data when that is too short, too.
DocumentsPtr take_side(DocumentsPtr documents, double share, Side side, std::int64_t window);

}  // namespace kf
