#include "core/wrap.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace kf {

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string wrapped(std::string_view text, std::size_t columns, std::size_t indent) {
  const std::size_t start = std::min(text.find_first_not_of(' '), text.size());
  std::string out(text.substr(0, start));
  std::size_t column = start;
  std::string_view gap;  // the blanks before the next word, kept while both are on one line
  for (std::size_t at = start; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    const std::size_t width = columns_of(word);
    if (!gap.empty() && column + gap.size() + width > columns) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else {
      out += gap;
      column += gap.size();
    }
    out += word;
    column += width;
    at = std::min(text.find_first_not_of(' ', end), text.size());
    gap = text.substr(end, at - end);
  }
  return out;
}

std::string folded(std::string_view page) {
  constexpr std::size_t kColumns = 80;
  constexpr std::size_t kFarthest = 40;  // a gap behind this is one between words
  std::string out;
  while (!page.empty()) {
    const std::size_t end = std::min(page.find('\n'), page.size());
    const std::string_view line = page.substr(0, end);
    std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
    const std::size_t gap = line.find("  ", indent);
    if (gap < kFarthest) {
      indent = std::min(line.find_first_not_of(' ', gap), line.size());
    }
    out += wrapped(line, kColumns, indent);
    if (end < page.size()) {
      out += '\n';
    }
    page.remove_prefix(std::min(end + 1, page.size()));
  }
  return out;
}

std::size_t terminal_columns(int descriptor) {
  if (::isatty(descriptor) != 1) {
    return 0;
  }
  winsize size{};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace kf
