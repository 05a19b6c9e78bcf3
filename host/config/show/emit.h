#pragma once
// The settings written down: a job as TOML or as a tree, and the rows as docs, tables, help and a schema for editors.

#include <string>

#include "config/schema/config.h"
#include "config/schema/schema.h"
#include "config/tree/node.h"

namespace kf::config {

/// The whole job as TOML that loads back to the same Config, bit for bit. Unset keys are comments.
std::string to_toml(const Config& config);

/// The job as sections of keys, null where unset; n_kv_heads is resolved, dp_shard stays -1.
Node to_tree(const Config& config);

/// A default as people write it in TOML: 0.0003, "adamw", [0.9, 0.95], unset.
std::string value_text(const Node& value);

/// What a row allows: "one of a, b", "> 0", "" where anything goes.
std::string allowed_text(const Row& row);
/// "integer", "list of strings", "integer, optional".
std::string type_text(const Row& row);

/// What docs and tables say of a key: its row's sentence, and whether it has no effect yet.
std::string doc_text(const Row& row);

/// docs/config.md.
std::string to_markdown();

/// A JSON schema for TOML editors; registered names are offered, others allowed (scripts bring their own).
Node to_schema(const Catalog& catalog);

/// The keys that match (a section, a pattern with *, or a part of a key or of its doc; empty for all), in lines of at most 80 columns.
std::string keys_table(const std::string& pattern);

/// The sections with their keys in lines of at most 80 columns, for `kf-host train --help`.
std::string sections_text();

}  // namespace kf::config
