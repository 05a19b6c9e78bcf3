// Tokenizers' files that are changed so that texts begin with BOS, or do not.

#include "data/tokenizer/text_start.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <set>

#include "core/fs.h"
#include "data/tokenizer/tokenizer_files.h"
#include "support/temp_dir.h"

namespace kf {
namespace {

using nlohmann::json;
using Ids = std::vector<std::int64_t>;

constexpr const char* kModel =
    R"("model": {"type": "BPE", "vocab": {"a": 0, "post_processor": 1, "\"}": 2, "<s>": 3, "</s>": 4}, "merges": []},
  "added_tokens": [{"id": 3, "content": "<s>", "special": true}, {"id": 4, "content": "</s>", "special": true}])";
const std::string kTemplate = R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
  {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}], "pair": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
  {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "<s>", "type_id": 1}}, {"Sequence": {"id": "B", "type_id": 1}}],
  "special_tokens": {"<s>": {"id": "<s>", "ids": [3], "tokens": ["<s>"]}, "</s>": {"id": "</s>", "ids": [4], "tokens": ["</s>"]}}})";

Ids surrounded(const fs::path& folder) {
  std::vector<std::uint32_t> out;
  open_tokenizer(folder.string())->append("a", out, {SpecialText::text, Surround::text});
  return {out.begin(), out.end()};
}

/// Writes the folder again with what has changed.
void apply(const test::TempDir& folder, bool with_bos) {
  const StartedFiles started = start_texts(tokenizer_files(folder.path()), *open_tokenizer(folder.path().string()), with_bos);
  CHECK(started.certain);
  for (const auto& [name, text] : started.changed) {
    folder.write(name, text);
  }
}

}  // namespace

TEST_CASE("tokenizer: a tokenizer.json is changed to begin texts with BOS or without, and nothing else of it") {
  const test::TempDir folder;
  const auto [post, after] = GENERATE_COPY(table<std::string, Ids>(
      {{R"(, "post_processor": )" + kTemplate, {4}},
       {R"(, "post_processor": {"type": "Sequence", "processors": [{"type": "ByteLevel", "trim_offsets": false}, )" + kTemplate + "]}",
        {4}},
       {R"(, "post_processor": {"type": "ByteLevel", "trim_offsets": false})", {}},
       {R"(, "post_processor": null)", {}},
       {"", {}}}));
  CAPTURE(post);
  const std::string before = std::string("{") + kModel + post + "\n, \"version\" :\t\"1.0\" }";
  folder.write("tokenizer.json", before);
  folder.write("tokenizer_config.json",
               R"({"bos_token": "<s>", "eos_token": "</s>", "model_max_length": 1000000000000000019884624838656})");
  for (const bool with_bos : {true, false, true}) {
    apply(folder, with_bos);
    Ids wanted = with_bos ? Ids{3, 0} : Ids{0};
    wanted.insert(wanted.end(), after.begin(), after.end());
    CHECK(surrounded(folder.path()) == wanted);
    CHECK(start_texts(tokenizer_files(folder.path()), *open_tokenizer(folder.path().string()), with_bos).changed.empty());
    const std::string text = read_file(folder / "tokenizer.json");
    CHECK(text.find(kModel) != std::string::npos);
    CHECK(text.ends_with("\n, \"version\" :\t\"1.0\" }"));
  }
  const json said = json::parse(read_file(folder / "tokenizer_config.json"));
  CHECK(read_file(folder / "tokenizer_config.json").find("1000000000000000019884624838656") != std::string::npos);
  if (said.contains("add_bos_token")) {
    CHECK(said["add_bos_token"] == true);
    CHECK(said["add_eos_token"] == !after.empty());
  }
}

TEST_CASE("tokenizer: of SentencePiece models tokenizer_config.json alone can say how texts begin") {
  const test::TempDir folder;
  fs::copy(fs::path(KF_SOURCE_DIR) / "tests/unit/data/tokenizer/files/spm_bpe_bytes/tokenizer.model", folder / "tokenizer.model");
  const auto tokenizer = open_tokenizer(folder.path().string());
  REQUIRE(tokenizer->bos_id());
  CHECK(surrounded(folder.path()).front() == *tokenizer->bos_id());
  const StartedFiles started = start_texts(tokenizer_files(folder.path()), *tokenizer, false);
  CHECK_FALSE(started.certain);
  REQUIRE(started.changed.size() == 1);
  folder.write("tokenizer_config.json", started.changed.at("tokenizer_config.json"));
  CHECK(surrounded(folder.path()) == tokenizer->encode("a"));
}

TEST_CASE("tokenizer: to one that is given as a file belongs what is read beside it") {
  const test::TempDir folder, words, copy;
  folder.write("tokenizer.json", std::string("{") + kModel + "}");
  folder.write("tokenizer_config.json", R"({"bos_token": "<s>", "eos_token": "</s>", "add_bos_token": true})");
  folder.write("chat_template.jinja", "{{ messages }}");
  folder.write("config.json", "{}");  // of a model
  words.write("vocab.json", R"({"a": 0, "b": 1, "ab": 2})");
  words.write("merges.txt", "a b\n");
  const auto names = [](const std::vector<fs::path>& files) {
    std::set<std::string> out;
    for (const fs::path& file : files) {
      out.insert(file.filename().string());
    }
    return out;
  };
  CHECK(names(tokenizer_files(folder / "tokenizer.json")) ==
        std::set<std::string>{"chat_template.jinja", "tokenizer.json", "tokenizer_config.json"});
  for (const fs::path& file : tokenizer_files(words / "vocab.json")) {
    fs::copy(file, copy / file.filename());
  }
  CHECK(open_tokenizer((copy / "vocab.json").string())->encode("ab") == Ids{2});  // needs merges.txt
}

}  // namespace kf
