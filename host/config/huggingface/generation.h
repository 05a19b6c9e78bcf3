#pragma once
// How a Hugging Face folder wants its model to write: generation_config.json, and what config.json says of it.

#include <cstdint>
#include <string>
#include <vector>

#include "config/tree/node.h"
#include "core/fs.h"

namespace kf::config {

/// What of a folder's generation_config.json and config.json is followed.
struct GenerationFile {
  /// Ids that end an answer: `eos_token_id`, a number or a list, of generation_config.json, else of config.json; none where neither says
  /// so.
  std::vector<std::int64_t> ends;
  std::string ends_from;                // the file that named them
  Table generate;                       // keys of [generate] with the file as their origin: temperature, top_k, top_p, ...
  std::vector<std::string> unfollowed;  // keys that would change what transformers writes, and that are not known here
};

/// `do_sample = false` is a temperature of 0, whatever the file says besides; without that key the numbers count as they stand, and what
/// the file leaves out has the default of [generate]. Numbers that are out of range are among `unfollowed`. Throws Code::config, naming the
/// file, for one that is no JSON object and for an eos_token_id that is neither an id nor a list of ids.
GenerationFile read_generation_file(const fs::path& folder);

}  // namespace kf::config
