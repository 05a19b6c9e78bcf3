#include "report/read/character.h"

#include "core/text.h"

namespace kf::report {

std::size_t character_size(std::string_view text) {
  for (std::size_t size = 1; size <= 4 && size <= text.size(); ++size) {
    if (is_utf8(text.substr(0, size))) {
      return size;
    }
  }
  return 0;
}

}  // namespace kf::report
