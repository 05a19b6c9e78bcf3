#include "report/page/page.h"

#include <sys/random.h>

#include <array>
#include <utility>

#include "core/error.h"
#include "core/markup.h"
#include "core/text.h"
#include "report/page/assets.h"

namespace kf::report {

std::string random_digits() {
  std::array<unsigned char, 16> bytes{};
  KF_CHECK(::getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()), Code::other,
           "the system gives no random numbers");
  std::string out;
  for (const unsigned char byte : bytes) {
    constexpr std::string_view kHex = "0123456789abcdef";
    out += kHex[byte >> 4U];
    out += kHex[byte & 15U];
  }
  return out;
}

std::string content_policy(std::string_view nonce, bool live) {
  return format(
      "default-src 'none'; script-src 'nonce-{}'; style-src 'nonce-{}'; img-src data:; connect-src {}; base-uri 'none'; form-action 'none'",
      nonce, nonce, live ? "'self'" : "'none'");
}

std::string page_html(std::string_view title, std::string_view data, std::string_view nonce, bool live) {
  const std::array<std::pair<std::string_view, std::string>, 6> values{{{"POLICY", content_policy(nonce, live)},
                                                                        {"NONCE", std::string(nonce)},
                                                                        {"TITLE", markup_escaped(title)},
                                                                        {"STYLE", std::string(assets::kStyle)},
                                                                        {"SCRIPT", std::string(assets::kScript)},
                                                                        {"DATA", std::string(data)}}};
  std::string out;
  std::string_view rest = assets::kHtml;
  for (;;) {
    const std::size_t open = rest.find("{{");
    const std::size_t close = open == std::string_view::npos ? open : rest.find("}}", open);
    if (close == std::string_view::npos) {
      return out.append(rest);
    }
    out.append(rest.substr(0, open));
    for (const auto& [name, value] : values) {
      if (rest.substr(open + 2, close - open - 2) == name) {
        out += value;
      }
    }
    rest.remove_prefix(close + 2);
  }
}

}  // namespace kf::report
