#pragma once
// Files of a tokenizer, changed so that their readers begin texts as a model was trained.

#include <map>
#include <string>
#include <vector>

#include "core/fs.h"
#include "data/tokenizer/tokenizer.h"

namespace kf {

struct StartedFiles {
  std::map<std::string, std::string> changed;  // name to content; none where the files say it as they are
  bool certain = true;                         // false: add_bos_token says it alone, which not every reader of such files follows
};

/// `files`: of `tokenizer`, which has a BOS id. By `with_bos`, the post_processor of tokenizer.json puts it in front of texts or not, and
/// add_bos_token of tokenizer_config.json says the same; all else in them stays as it is.
StartedFiles start_texts(const std::vector<fs::path>& files, const Tokenizer& tokenizer, bool with_bos);

}  // namespace kf
