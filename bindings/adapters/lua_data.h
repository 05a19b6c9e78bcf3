#pragma once
// Data from Lua: data sets, transforms of documents and batches, tokenizers.

#include <lua.hpp>

#include "bindings/session/session.h"
#include "config/schema/part.h"

namespace kf::lua {

/// factory{ config, options, seq_len } -> { size = n, get = function(i) -> list of seq_len + 1 ids, or an int64 tensor }
void add_dataset(lua_State* L, Session& session, config::PartInfo info);
/// factory{ config, options } -> function(doc) -> doc, another, or nil to drop it; doc.text. Or, by data.batch_transforms,
/// function(batch) -> batch; batch.tokens, labels, doc_ids, index, samples, sources, training
void add_transform(lua_State* L, Session& session, config::PartInfo info);
/// factory{ config, options } -> { encode(text) -> ids, decode(ids) -> text, vocab_size = n, eos_id = id or nil }
void add_tokenizer(lua_State* L, Session& session, config::PartInfo info);

}  // namespace kf::lua
