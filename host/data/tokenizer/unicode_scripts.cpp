#include "data/tokenizer/unicode_scripts.h"

#include <algorithm>
#include <iterator>

#include "data/tokenizer/unicode_scripts_table.h"

namespace kf::unicode {

int split_script(std::uint32_t cp) {
  const auto* found = std::upper_bound(std::begin(kScripts), std::end(kScripts), cp,
                                       [](std::uint32_t value, const ScriptRange& range) { return value < range.first; });
  if (found == std::begin(kScripts)) {
    return kAnyScript;
  }
  --found;
  return cp <= found->last ? found->script : kAnyScript;
}

}  // namespace kf::unicode
