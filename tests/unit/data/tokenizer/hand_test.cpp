// Cases written by hand: what files may ask, what goes wrong, long texts, threads.

#include <catch2/catch.hpp>
#include <ctime>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/error.h"
#include "core/fs.h"
#include "core/text.h"
#include "data/tokenizer/tokenizer.h"
#include "support/temp_dir.h"

namespace kf {
namespace {

using Catch::Matchers::Contains;
using Ids = std::vector<std::int64_t>;

std::string error_of(const std::string& path) {
  try {
    open_tokenizer(path);
  } catch (const Error& error) {
    CHECK(error.code() == Code::data);
    return error.what();
  }
  return "no error";
}

std::vector<std::uint32_t> encode(const Tokenizer& tokenizer, std::string_view text, const EncodeOptions& options = {}) {
  std::vector<std::uint32_t> out;
  tokenizer.append(text, out, options);
  return out;
}

fs::path sample(const char* name) { return fs::path(KF_SOURCE_DIR) / "tests/unit/data/tokenizer/files" / name; }

TEST_CASE("tokenizer: with ignore_merges a word that is a token is that token") {  // H31
  const test::TempDir folder;
  const bool ignore = GENERATE(false, true);
  const fs::path file =
      folder.write("tokenizer.json", std::string(R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "bc": 3, "abc": 4},
    "merges": ["b c"], "ignore_merges": )") +
                                         (ignore ? "true" : "false") + "}}");
  CHECK(open_tokenizer(file.string())->encode("abc") == (ignore ? Ids{4} : Ids{0, 3}));
}

TEST_CASE("tokenizer: names of special tokens are text, tokens or an error, and counted") {  // H29
  const auto tokenizer = open_tokenizer(sample("byte_gpt2").string());
  const auto eos = static_cast<std::uint32_t>(*tokenizer->eos_id());
  const std::string text = "a<|endoftext|>b";
  const auto as_text = encode(*tokenizer, text);
  CHECK(std::count(as_text.begin(), as_text.end(), eos) == 0);
  const auto as_special = encode(*tokenizer, text, {SpecialText::special});
  CHECK(std::count(as_special.begin(), as_special.end(), eos) == 1);
  CHECK(tokenizer->decode(Ids(as_text.begin(), as_text.end())) == text);
  std::vector<std::uint32_t> out;
  CHECK(tokenizer->append(text + text, out, {}) == 2);
  CHECK_THROWS_WITH(encode(*tokenizer, text, {SpecialText::error}), Contains("<|endoftext|>") && Contains("byte 1"));
  CHECK(encode(*tokenizer, "nothing special", {SpecialText::error}) == encode(*tokenizer, "nothing special"));
}

TEST_CASE("tokenizer: one token may begin and end documents, and a tokenizer may have none") {  // H32
  const test::TempDir folder;
  const std::string model = R"("model": {"type": "BPE", "vocab": {"a": 0, "<x>": 1}, "merges": []}})";
  const std::string added = R"({"added_tokens": [{"id": 1, "content": "<x>", "special": true}], )";
  folder.write("one/tokenizer.json", added + model);
  folder.write("one/tokenizer_config.json", R"({"bos_token": "<x>", "eos_token": {"content": "<x>"}})");
  const auto one = open_tokenizer((folder / "one").string());
  CHECK(one->bos_id() == 1);
  CHECK(one->eos_id() == 1);
  folder.write("none/tokenizer.json", added + model);
  const auto none = open_tokenizer((folder / "none").string());
  CHECK(!none->eos_id());
  CHECK(!none->bos_id());
  CHECK(one->content_hash() != none->content_hash());
  folder.write("one/tokenizer_config.json", R"({"eos_token": "</s>"})");
  CHECK_THAT(error_of((folder / "one").string()), Contains("eos_token") && Contains("</s>"));
}

TEST_CASE("tokenizer: bytes that are no UTF-8 survive byte-level tokenizers and are U+FFFD for others") {  // H30
  const std::string broken = "a\xed\xa0\x80 \xff b\xc3";
  const auto bytes = open_tokenizer(sample("split_cl100k").string());
  const Ids ids = bytes->encode(broken);
  CHECK(bytes->decode(ids) == broken);
  const auto pieces = open_tokenizer(sample("llama2").string());
  CHECK(pieces->encode(broken) == pieces->encode("a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd \xef\xbf\xbd b\xef\xbf\xbd"));
}

TEST_CASE("tokenizer: a million letters, blanks or characters take well under a second in every kind") {
  for (const fs::path& cases : glob(sample(""), "*/cases.jsonl")) {
    const auto tokenizer = open_tokenizer(cases.parent_path().string());
    for (const char* unit : {"a", " ", "\n", "\xe4\xb8\xad", "\xf0\x9f\x98\x80", "ab", "1"}) {
      std::string text;
      while (text.size() < 1000000) {
        text += unit;
      }
      const std::clock_t start = std::clock();  // of the processor: what else runs does not matter
      encode(*tokenizer, text);
      const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
      INFO(cases.parent_path().filename() << " with " << unit << ": " << seconds << " s");
      CHECK(seconds < 20);  // quadratic time would take minutes; what it takes is in the message
      if (seconds > 1.5) {
        WARN(cases.parent_path().filename() << " with '" << unit << "' took " << seconds << " s");
      }
    }
  }
}

TEST_CASE("tokenizer: threads that encode at once get the same ids") {
  for (const char* name : {"byte_gpt2", "llama2", "spm_unigram_nmt_nfkc"}) {
    const auto tokenizer = open_tokenizer(sample(name).string());
    REQUIRE(tokenizer->concurrent());
    const std::string text = read_file(sample(name) / "cases.jsonl");
    const auto wanted = encode(*tokenizer, text);
    std::vector<std::vector<std::uint32_t>> got(4);
    {
      std::vector<std::jthread> threads;
      for (auto& own : got) {
        threads.emplace_back([&] {
          for (int i = 0; i < 5; ++i) {
            own = encode(*tokenizer, text);
          }
        });
      }
    }
    for (const auto& own : got) {
      CHECK(own == wanted);
    }
  }
}

TEST_CASE("tokenizer: the content's hash is that of the content, not of its place") {  // H26
  const test::TempDir folder;
  const std::string text = read_file(sample("byte_gpt2") / "tokenizer.json");
  const auto first = open_tokenizer(folder.write("a/tokenizer.json", text).string())->content_hash();
  CHECK(first.size() == 64);
  CHECK(open_tokenizer(folder.write("b/c/tokenizer.json", text).string())->content_hash() == first);
  std::string changed = text;
  changed.replace(changed.find("\"1.0\""), 5, "\"1.1\"");
  CHECK(open_tokenizer(folder.write("a/tokenizer.json", changed).string())->content_hash() != first);
}

TEST_CASE("tokenizer: what a file asks and is not supported is named with its place") {
  const test::TempDir folder;
  const auto with = [&](const std::string& rest) {
    return error_of(folder.write("tokenizer.json", R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []})" + rest + "}").string());
  };
  CHECK_THAT(with(R"(, "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Romaji"}]})"),
             Contains("tokenizer.json: normalizer.normalizers[1].type = \"Romaji\" is not supported"));
  CHECK_THAT(with(R"(, "pre_tokenizer": {"type": "Jieba"})"), Contains("pre_tokenizer.type = \"Jieba\" is not supported"));
  CHECK_THAT(with(R"(, "decoder": {"type": "Morse"})"), Contains("decoder.type = \"Morse\""));
  CHECK_THAT(with(R"(, "post_processor": {"type": "Stamp"})"), Contains("post_processor.type = \"Stamp\""));
  CHECK_THAT(with(R"(, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a"}, "behavior": "Isolated", "invert": false})"),
             Contains("pre_tokenizer.pattern.Regex") && Contains("does not compile"));
  CHECK_THAT(with(R"(, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "a"}, "behavior": "Sometimes", "invert": false})"),
             Contains("pre_tokenizer.behavior") && Contains("Sometimes"));
  const auto model = [&](const std::string& text) {
    return error_of(folder.write("tokenizer.json", R"({"model": )" + text + "}").string());
  };
  CHECK_THAT(model(R"({"type": "BPE", "vocab": {"a": 0}, "merges": [], "dropout": 0.1})"),
             Contains("model.dropout = 0.1") && Contains("not supported"));
  CHECK_THAT(model(R"({"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]})"), Contains("model.merges[0]") && Contains("\"b\""));
  CHECK_THAT(model(R"({"type": "BPE", "vocab": {"a": -1}, "merges": []})"), Contains("model.vocab[\"a\"]"));
  CHECK_THAT(model(R"({"type": "LSTM", "vocab": {"a": 0}})"), Contains("model.type = \"LSTM\""));
  CHECK_THAT(model(R"({"type": "Unigram", "vocab": [["a"]]})"), Contains("model.vocab[0]"));
}

TEST_CASE("tokenizer: a class of a regular expression may hold classes, as BLOOM's does") {
  const test::TempDir folder;
  const auto ids = [&](const std::string& pattern, const std::string& text) {
    const auto tokenizer = open_tokenizer(
        folder
            .write("tokenizer.json", R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "(": 2, "x": 3, "aa": 4, "xx": 5, "((": 6},
                   "merges": ["a a", "x x", "( ("]}, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": ")" +
                                         pattern + R"("}, "behavior": "Isolated", "invert": false}})")
            .string());
    return tokenizer->encode(text);
  };
  CHECK(ids("[^(|[ab]]+", "aaxx((") == Ids{4, 5, 6});
  CHECK(ids("[[ab]x]", "aaxxb") == Ids{0, 0, 3, 3, 1});  // each character of the class alone
  const auto refused = [&](const std::string& pattern) {
    try {
      ids(pattern, "");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  CHECK(ids("[a[^abx]]", "aaxx((") == Ids{0, 0, 5, 2, 2});
  CHECK(ids("[a-x&&[^b]&&[^x]]+", "aaxx((") == Ids{4, 5, 6});
  CHECK(ids("[^\\\\Wa]", "aaxx((") == Ids{4, 3, 3, 6});
  CHECK(ids("[x\\\\W]", "aaxx((") == Ids{4, 3, 3, 2, 2});
  for (const char* pattern : {"[a-[b]]", "[[a]-z]", "[[-a]]", "[a&&]", "[[:vowel:]]", "\\\\p{Vowel}", "\\\\X", "(?W)a", "(?~a)"}) {
    CHECK_THAT(refused(pattern), Contains("pre_tokenizer.pattern.Regex") && Contains("is not supported"));
  }
}

TEST_CASE("tokenizer: regular expressions mean what they do in Oniguruma") {
  const test::TempDir folder;
  const auto replaced = [&](const std::string& pattern, const std::string& text) {  // each match by a *
    nlohmann::json file = nlohmann::json::parse(R"({"model": {"type": "BPE", "vocab": {"?": 0}, "merges": [], "unk_token": "?"}})");
    std::string letters = "*abcdsx1 \n";
    for (const char c : letters) {
      file["model"]["vocab"][std::string(1, c)] = static_cast<unsigned char>(c);
    }
    file["normalizer"] = {{"type", "Replace"}, {"pattern", {{"Regex", pattern}}}, {"content", "*"}};
    std::string out;
    for (const std::int64_t id : open_tokenizer(folder.write("tokenizer.json", file.dump()).string())->encode(text)) {
      out += id == 0 ? '?' : static_cast<char>(id);
    }
    return out;
  };
  CHECK(replaced("a*", "aab") == "*b*");     // right behind a match no empty one
  CHECK(replaced("\\s+$", "a \n") == "a*");  // ends of lines, and of the text
  CHECK(replaced("^\\s*", "a\n\nb") == "*a\n*b");
  CHECK(replaced("(?m)a.", "a\nb") == "*b");  // m lets . match line breaks,
  CHECK(replaced("a.", "a\nb") == "a\nb");
  CHECK(replaced("a(?i)b|c", "aB c ac") == "* c *");  // a flag is of the rest of the group, alternatives too
  CHECK(replaced("(?x) a b # c", "ab a b c") == "* a b c");
  CHECK(replaced("a{,2}b", "aaab b") == "a* *");
  CHECK(replaced("a{2}?b", "aab b") == "* *");  // as (?:a{2})?
  CHECK(replaced("a{1,2}{2}b", "aaab ab") == "* ab");
  CHECK(replaced("\\x{61}|\\u0062", "abc") == "**c");
  CHECK(replaced("\\pa", "pab") == "*b");  // p alone is a letter: there is no \pL
  CHECK(replaced("(?<l>a|b)\\k<l>", "aabab") == "*bab");
  CHECK(replaced("(?i:ss)", "ss\u00df") == "**");
  CHECK(replaced("[[:^alpha:]]|\\R", "a1\nb") == "a**b");
}

TEST_CASE("tokenizer: characters newer or older than a library's tables are what the libraries take them for") {
  const test::TempDir folder;
  const auto ids = [&](const std::string& part, const std::string& text) {
    return open_tokenizer(
               folder
                   .write("tokenizer.json", R"({"model": {"type": "WordLevel", "vocab": {"?": 0, "\u04e7": 1, "\u3001": 2, "\u1c8a": 3,
                                     "x": 4, "\u00b2": 5, "\u32ff": 6}, "unk_token": "?"}, )" +
                                                part + "}")
                   .string())
        ->encode(text);
  };
  CHECK(ids(R"("normalizer": {"type": "NFKD"})", "\xe3\x8b\xbf") == Ids{6});       // U+32FF, an era that their tables do not know
  CHECK(ids(R"("normalizer": {"type": "Lowercase"})", "\xe1\xb2\x89") == Ids{3});  // U+1C89, of Unicode 16
  const auto split = [&](const std::string& pattern, const std::string& text) {
    return ids(R"("pre_tokenizer": {"type": "Split", "behavior": "Removed", "invert": false, "pattern": {"Regex": ")" + pattern + "\"}}",
               text);
  };
  CHECK(split("\\\\p{Han}", "\xe3\x80\x81") == Ids{2});  // U+3001 is used with Han, and of no script
  CHECK(split("[\\\\w.]", "x\xc2\xb2") == Ids{5});       // in a class no part of a word,
  CHECK(split("\\\\w", "x\xc2\xb2").empty());            // alone one
  CHECK(split("[[:punct:]]", "x$\xc2\xb1") == Ids{4});   // symbols, too
}

TEST_CASE("tokenizer: an added token that lies in the blanks which another took is none") {
  const test::TempDir folder;
  const auto tokenizer = open_tokenizer(folder
                                            .write("tokenizer.json", R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []},
      "added_tokens": [{"id": 1, "content": "\n", "lstrip": true, "rstrip": true, "normalized": false, "special": true}]})")
                                            .string());
  CHECK(encode(*tokenizer, "a \n\n a\n", {SpecialText::special}) == std::vector<std::uint32_t>{0, 1, 0, 1});
}

TEST_CASE("tokenizer: of several post-processors each treats what the one before made as texts of their own") {
  const test::TempDir folder;
  const auto ids = [&](const std::string& processors) {
    const auto tokenizer =
        open_tokenizer(folder
                           .write("tokenizer.json", R"({"model": {"type": "BPE", "vocab": {"a": 0, "<s>": 1, "</s>": 2}, "merges": []},
                   "post_processor": {"type": "Sequence", "processors": [)" +
                                                        processors + "]}}")
                           .string());
    return encode(*tokenizer, "a", {SpecialText::text, Surround::text});
  };
  const std::string around = R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}},
      {"SpecialToken": {"id": "</s>"}}], "special_tokens": {"<s>": {"ids": [1]}, "</s>": {"ids": [2]}}})";
  using Few = std::vector<std::uint32_t>;
  CHECK(ids(R"({"type": "ByteLevel"}, )" + around) == Few{1, 0, 2});
  CHECK(ids(around + R"(, {"type": "BertProcessing", "sep": ["</s>", 2], "cls": ["<s>", 1]})") == Few{1, 1, 2, 0, 2, 2, 2});
  CHECK(ids(around + R"(, {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 1]})") == Few{1, 1, 2, 2, 0, 2, 2, 2, 2});
  CHECK_THROWS_WITH(ids(around + ", " + around), Contains("post_processor.processors[1]") && Contains("not supported"));
}

/// What stands around a text, and before a prompt. Values of transformers 5.3.0 but where its name says something else.
TEST_CASE("tokenizer: before a prompt stands what the library puts in front of a text, and nothing behind it") {
  const test::TempDir folder;
  const std::string model = R"({"model": {"type": "BPE", "vocab": {"a": 0, "<s>": 1, "</s>": 2}, "merges": []},
      "added_tokens": [{"id": 1, "content": "<s>", "special": true}, {"id": 2, "content": "</s>", "special": true}],)";
  const auto with = [&](const std::string& processor) {
    return open_tokenizer(folder.write("tokenizer.json", model + R"("post_processor": )" + processor + "}").string());
  };
  const std::string ends = R"({"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "</s>"}}],
      "special_tokens": {"</s>": {"ids": [2]}}})";
  CHECK(encode_prompt(*with(ends), "aa") == Ids{0, 0});
  CHECK(encode(*with(ends), "aa", {SpecialText::text, Surround::text}) == std::vector<std::uint32_t>{0, 0, 2});
  const auto bert = with(R"({"type": "BertProcessing", "sep": ["</s>", 2], "cls": ["<s>", 1]})");
  CHECK(encode_prompt(*bert, "aa") == Ids{1, 0, 0});
  CHECK(encode_prompt(*bert, "<s>aa") == Ids{1, 0, 0});  // once
  CHECK(encode_prompt(*bert, "") == Ids{1});
  CHECK(encode_prompt(*with(R"({"type": "ByteLevel"})"), "aa") == Ids{0, 0});
  folder.write("tokenizer_config.json", R"({"add_bos_token": true, "bos_token": "<s>"})");
  CHECK(encode_prompt(*with(R"({"type": "ByteLevel"})"), "aa") == Ids{0, 0});  // tokenizer.json decides
}

TEST_CASE("tokenizer: SentencePiece, ranks and vocab.json have BOS and EOS by tokenizer_config.json, else by their library") {
  const test::TempDir folder;
  const auto shape = [&](const char* kind, const std::string& config) {
    fs::remove_all(folder / kind);
    fs::copy(sample(kind), folder / kind, fs::copy_options::recursive);
    if (!config.empty()) {
      folder.write(std::string(kind) + "/tokenizer_config.json", config);
    }
    const auto tokenizer = open_tokenizer((folder / kind).string());
    std::string out;
    const Ids bare = encode_prompt(*tokenizer, "the cat");
    const std::vector<std::uint32_t> whole = encode(*tokenizer, "the cat", {SpecialText::text, Surround::text});
    const std::size_t plain = tokenizer->encode("the cat").size();
    out += bare.size() == plain ? "-" : bare.size() == plain + 1 && bare.front() == tokenizer->bos_id() ? "B" : "?";
    out += whole.size() == bare.size() ? "-" : whole.size() == bare.size() + 1 && whole.back() == tokenizer->eos_id() ? "E" : "?";
    return out;
  };
  const std::string t5 = R"({"tokenizer_class": "T5Tokenizer"})";
  const std::string no_bos = R"({"add_bos_token": false})";
  const std::string eos = R"({"add_eos_token": true})";
  const std::string neither = R"({"add_bos_token": false, "add_eos_token": null})";
  for (const char* kind : {"spm_bpe_bytes", "spm_unigram_nmt_nfkc"}) {
    CAPTURE(kind);
    CHECK(shape(kind, "") == "B-");
    CHECK(shape(kind, no_bos) == "--");
    CHECK(shape(kind, eos) == "BE");
    CHECK(shape(kind, t5) == "-E");
    CHECK(shape(kind, neither) == "--");
  }
  CHECK(shape("tekken", "") == "B-");
  CHECK(shape("tiktoken_llama", "") == "B-");
  CHECK(shape("tiktoken_llama", no_bos) == "--");
  CHECK(shape("vocab_merges", "") == "--");
}

TEST_CASE("tokenizer: the file beside ranks says which tokens begin and end documents") {
  const test::TempDir folder;
  std::string ranks;
  for (int byte = 0; byte < 256; ++byte) {  // each byte in base64: six bits and two
    constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    ranks += format("{}{}== {}\n", letters[static_cast<std::size_t>(byte >> 2)], letters[static_cast<std::size_t>(byte & 3) << 4], byte);
  }
  const std::string file = folder.write("own.tiktoken", ranks).string();
  folder.write("own.tiktoken.json",
               R"({"pattern": "gpt2", "special_tokens": {"<go>": 300, "<stop>": 301}, "bos_token": "<go>", "eos_token": "<stop>"})");
  CHECK(open_tokenizer(file)->bos_id() == 300);
  CHECK(open_tokenizer(file)->eos_id() == 301);
  folder.write("own.tiktoken.json", R"({"pattern": "gpt2", "special_tokens": {"<go>": 300}, "eos_token": "<end>"})");
  CHECK_THAT(error_of(file), Contains("eos_token") && Contains("<end>") && Contains("special_tokens"));
}

TEST_CASE("tokenizer: marks of chats that a tokenizer does not call special are text in what is said, other added tokens are found") {
  const test::TempDir folder;
  const std::string mark = "<\xef\xbd\x9cUser\xef\xbd\x9c>";
  const auto tokenizer =
      open_tokenizer(folder
                         .write("tokenizer.json",
                                R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}, "added_tokens": [{"id": 1, "content": ")" +
                                    mark + R"(", "normalized": false}, {"id": 2, "content": "<think>", "normalized": false}]})")
                         .string());
  const std::string text = mark + "a" + mark + "<think>";
  using Few = std::vector<std::uint32_t>;
  CHECK(encode(*tokenizer, text) == Few{1, 0, 1, 2});  // as the library reads a plain text
  const std::vector<ByteRange> written{{0, mark.size()}};
  EncodeOptions options;
  options.written = written;
  CHECK(encode(*tokenizer, text, options) == Few{1, 0, 2});  // what the vocabulary lacks is left out
}

TEST_CASE("tokenizer: names of special tokens in what a format wrote are the tokens, in what it was given they are text") {
  const std::string format = "<s>x</s>";
  for (const char* kind : {"llama2", "spm_bpe_bytes", "tekken", "byte_gpt2"}) {
    CAPTURE(kind);
    const auto tokenizer = open_tokenizer(sample(kind).string());
    const std::uint32_t begin = static_cast<std::uint32_t>(*tokenizer->token_id("<s>"));
    const std::string text = format + "<s></s>" + format;
    const std::vector<ByteRange> written{{0, format.size()}, {text.size() - format.size(), text.size()}};
    const auto count = [&](const std::vector<std::uint32_t>& ids) { return std::count(ids.begin(), ids.end(), begin); };
    std::vector<std::uint32_t> ids;
    EncodeOptions options;
    options.written = written;
    CHECK(tokenizer->append(text, ids, options) == 2);  // names in what was given
    CHECK(count(ids) == 2);
    options.special = SpecialText::error;
    CHECK_THROWS_WITH(tokenizer->append(text, ids, options), Contains("<s>") && Contains("byte 8"));
    const std::vector<ByteRange> half{{0, 2}};
    options = {};
    options.written = half;
    ids.clear();
    tokenizer->append(format, ids, options);
    CHECK(count(ids) == 0);
  }
}

TEST_CASE("tokenizer: bytes that decoding leaves unfinished are one U+FFFD a character for what follows the byte level") {
  const test::TempDir folder;
  const auto with = [&](const std::string& decoder) {
    return open_tokenizer(folder
                              .write("tokenizer.json", R"({"model": {"type": "BPE", "vocab": {"a": 0, "\u00e0": 1, "\u00b8": 2},
                                     "merges": []}, "decoder": )" +
                                                           decoder + "}")
                              .string());
  };
  CHECK(with(R"({"type": "ByteLevel"})")->decode(Ids{1, 2, 0}) ==
        "\xe0\xb8"
        "a");
  CHECK(with(R"({"type": "Sequence", "decoders": [{"type": "ByteLevel"}, {"type": "Fuse"}]})")->decode(Ids{1, 2, 0}) ==
        "\xef\xbf\xbd"
        "a");
}

TEST_CASE("tokenizer: broken files say what is broken and where") {
  const test::TempDir folder;
  CHECK_THAT(error_of((folder / "none").string()), Contains("no such file"));
  CHECK_THAT(error_of(folder.path().string()), Contains("holds no tokenizer") && Contains("tokenizer.json"));
  CHECK_THAT(error_of(folder.write("a.json", "{\"model\": \n[}").string()), Contains("line 2, column 2"));
  CHECK_THAT(error_of(folder.write("b.json", "{\"a\": 0}").string()), Contains("merges.txt") && Contains("missing"));
  CHECK_THAT(error_of(folder.write("c.tiktoken", "YQ== 0\nYg==\n").string()), Contains("line 2"));
  CHECK_THAT(error_of(folder.write("d.tiktoken", "YQ== 0\nYg== 1\n").string()),
             Contains("does not say how text is split") && Contains("d.tiktoken.json"));
  CHECK_THAT(error_of(folder.write("cl100k.tiktoken", "YQ== 0\n").string()), Contains("all 256"));
  const std::string model = read_file(sample("spm_unigram_nmt_nfkc") / "tokenizer.model");
  CHECK_THAT(error_of(folder.write("cut.model", model.substr(0, model.size() / 2)).string()), Contains("cut.model") && Contains("at byte"));
  CHECK_THAT(error_of(folder.write("noise.model", "\x01\x02nonsense").string()), Contains("noise.model"));
  CHECK_THAT(error_of(folder.write("empty.model", "").string()), Contains("empty"));
}

TEST_CASE("tokenizer: ids that are no token are refused, unless the model has rows for them") {
  const auto strict = open_tokenizer(sample("byte_gpt2").string());
  const std::int64_t size = strict->vocab_size();
  CHECK_THROWS_WITH(strict->decode(Ids{size}), Contains(std::to_string(size)));
  CHECK_THROWS_AS(strict->decode(Ids{-1}), Error);
  const auto wide = open_tokenizer(sample("byte_gpt2").string(), size + 10);
  CHECK(wide->decode(Ids{size + 9}).empty());
  CHECK_THROWS_AS(wide->decode(Ids{size + 10}), Error);
}

TEST_CASE("tokenizer: text of ids that come one by one is the text of all, in whole characters, behind a prompt, too") {
  for (const char* name : {"byte_gpt2", "llama2", "spm_unigram_nmt_nfkc", "spm_bpe_bytes"}) {
    INFO(name);
    const auto tokenizer = open_tokenizer(sample(name).string());
    // The last characters are in no vocabulary: of some tokenizers their bytes are tokens.
    const std::string text =
        "Hello world, na\xc3\xafve \xe4\xbd\xa0\xe5\xa5\xbd \xf0\x9f\x91\x8d and a long tail of words so that context is dropped "
        "\xf0\xaa\x9b\x96\xf0\xaa\x9b\x95\xf0\xaa\x9b\x94\xf0\xaa\x9b\x93\xea\x99\xae and an end";
    const Ids ids = tokenizer->encode(text);
    for (const std::size_t prompt : {std::size_t{0}, std::size_t{1}, ids.size() / 2, ids.size() - 2}) {
      const Ids before(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(prompt));
      TextStream stream(*tokenizer, before);
      std::string got = tokenizer->decode(before);
      for (std::size_t i = prompt; i < ids.size(); ++i) {
        const std::string part = stream.push(ids[i]);
        CHECK(is_utf8(part));
        CHECK(part.find("\xef\xbf\xbd") == std::string::npos);
        got += part;
      }
      CHECK(got + stream.finish() == tokenizer->decode(ids));
    }
  }
}

}  // namespace
}  // namespace kf
