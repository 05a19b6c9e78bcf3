#include "core/credentials.h"

#include <algorithm>

namespace kf {

std::string without_credentials(std::string_view text) {
  constexpr std::string_view mark = "://";
  std::string out;
  for (std::size_t at = text.find(mark); at != std::string_view::npos; at = text.find(mark)) {
    const std::size_t begin = at + mark.size();
    const std::string_view rest = text.substr(begin);
    const std::string_view authority = rest.substr(0, std::min(rest.find_first_of("/?# \t\r\n\"'<>"), rest.size()));
    const std::size_t user_end = authority.rfind('@');
    out += text.substr(0, begin);
    text.remove_prefix(begin + (user_end == std::string_view::npos ? 0 : user_end + 1));
  }
  return out.append(text);
}

std::string shown_url(std::string_view url) { return without_credentials(url.substr(0, std::min(url.find('?'), url.size()))); }

}  // namespace kf
