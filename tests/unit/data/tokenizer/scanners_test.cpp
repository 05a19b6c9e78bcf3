// The hand-written scanners are the patterns: PCRE2 finds the same pieces in random text.

#include "data/tokenizer/scanners.h"

#include <catch2/catch.hpp>
#include <random>

#include "core/text.h"
#include "data/tokenizer/regex.h"

namespace kf {
namespace {

std::string random_text(std::mt19937& rng) {
  static const std::vector<std::string> pieces{"a",
                                               "b",
                                               "Z",
                                               "Q",
                                               " ",
                                               " ",
                                               "  ",
                                               "\n",
                                               "\r",
                                               "\t",
                                               "'",
                                               "'s",
                                               "'LL",
                                               "'re",
                                               "'\xc5\xbf",
                                               "1",
                                               "23",
                                               "/",
                                               "//",
                                               ".",
                                               "-",
                                               "(",
                                               "é",
                                               "É",
                                               "中",
                                               "の",
                                               "Ǆ",
                                               "ǅ",
                                               "\xcc\x81",
                                               "\xcc\x81\xcc\xa3",
                                               "ª",
                                               "ʰ",
                                               "½",
                                               "٣",
                                               "\xc2\xa0",
                                               "\xe3\x80\x80",
                                               "\xc2\x85",
                                               "\xe2\x80\xa8",
                                               "\xe2\x80\x8d",
                                               "😀",
                                               "\xf0\x9f\x91\xa9\xe2\x80\x8d",
                                               "\xe1\xb2\x89",
                                               "\xf0\x90\xb5\x80",
                                               "_",
                                               "#",
                                               "\xef\xbf\xbd"};
  std::string out;
  std::uniform_int_distribution<std::size_t> pick(0, pieces.size() - 1);
  const std::size_t count = std::uniform_int_distribution<std::size_t>(1, 24)(rng);
  for (std::size_t i = 0; i < count; ++i) {
    if (rng() % 12 == 0) {
      const std::uint32_t cp = rng() % (rng() % 2 == 0 ? 0x3000 : 0x20000);
      unicode::append(out, cp >= 0xd800 && cp < 0xe000 ? 0x41 : cp);
    } else {
      out += pieces[pick(rng)];
    }
  }
  return out;
}

std::vector<std::string> by_scanner(scan::Pattern pattern, std::string_view text) {
  std::vector<std::string> out;
  const char* end = text.data() + text.size();
  const scan::Reader reader(end);
  scan::with_scanner(pattern, [&](auto scanner) {
    for (const char* p = text.data(); p < end;) {
      const char* stop = decltype(scanner)::next(p, reader);
      out.emplace_back(p, stop);
      p = stop;
    }
  });
  return out;
}

TEST_CASE("tokenizer: each scanner cuts as its regular expression does") {
  using scan::Pattern;
  const Pattern pattern = GENERATE(Pattern::gpt2, Pattern::tiktoken_gpt2, Pattern::cl100k, Pattern::tiktoken_cl100k, Pattern::qwen2,
                                   Pattern::o200k, Pattern::tekken);
  const Regex regex(scan::pattern_text(pattern), scan::Dialect::rust, "here");
  std::mt19937 rng(static_cast<unsigned>(pattern) + 7);
  for (int round = 0; round < 20000; ++round) {
    const std::string text = random_text(rng);
    std::vector<std::string> wanted;
    regex.each_match(text, [&](std::size_t begin, std::size_t end) {
      wanted.push_back(text.substr(begin, end - begin));
      return true;
    });
    INFO(scan::pattern_text(pattern) << "\n" << kf::quoted(text));
    REQUIRE(by_scanner(pattern, text) == wanted);
  }
}

TEST_CASE("tokenizer: words of any length end at any character, as in the regular expression") {
  using scan::Pattern;
  const Pattern pattern = GENERATE(Pattern::gpt2, Pattern::cl100k, Pattern::qwen2, Pattern::o200k, Pattern::tekken);
  const Regex regex(scan::pattern_text(pattern), scan::Dialect::rust, "here");
  static const std::vector<std::string> others{"é", "É", "中", "\xcc\x81", "\xc2\xa0", "😀"};
  for (std::size_t length = 0; length < 36; ++length) {
    for (std::size_t border = 1; border < 128 + others.size(); ++border) {
      const std::string between = border < 128 ? std::string(1, static_cast<char>(border)) : others[border - 128];
      std::string text(length, static_cast<char>('a' + border % 26));
      if (length > 2 && border % 3 == 0) {
        text[length / 2] = static_cast<char>('A' + border % 26);
      }
      text += between + "tail that is long enough" + between;
      std::vector<std::string> wanted;
      regex.each_match(text, [&](std::size_t begin, std::size_t end) {
        wanted.push_back(text.substr(begin, end - begin));
        return true;
      });
      INFO(scan::pattern_text(pattern) << "\n" << kf::quoted(text));
      REQUIRE(by_scanner(pattern, text) == wanted);
    }
  }
}

TEST_CASE("tokenizer: scanners go over any bytes and stay inside") {
  using scan::Pattern;
  const Pattern pattern =
      GENERATE(Pattern::gpt2, Pattern::cl100k, Pattern::tiktoken_cl100k, Pattern::qwen2, Pattern::o200k, Pattern::tekken);
  std::mt19937 rng(3);
  for (int round = 0; round < 5000; ++round) {
    std::string text;
    for (std::size_t i = rng() % 30; i > 0; --i) {
      text += static_cast<char>(rng() % 3 == 0 ? rng() % 256 : " a'\n\xe4\xb8\xad"[rng() % 7]);
    }
    std::string joined;
    for (const std::string& piece : by_scanner(pattern, text)) {
      REQUIRE(!piece.empty());
      joined += piece;
    }
    REQUIRE(joined == text);
  }
}

}  // namespace
}  // namespace kf
