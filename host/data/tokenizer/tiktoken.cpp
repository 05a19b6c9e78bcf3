// Rank files of tiktoken: a line is a token in base64, a blank, its rank. What splits the text and which special tokens there are stands in
// no such file; docs/data.md says how it is found.

#include <charconv>

#include "core/error.h"
#include "core/input_file.h"
#include "data/tokenizer/charsmap.h"
#include "data/tokenizer/json.h"
#include "data/tokenizer/rank_tokenizer.h"

namespace kf {
namespace {

/// An encoding that is published: its pattern, and its special tokens by their distance from the number of ranks.
struct Encoding {
  const char* name;  // part of the file's name
  scan::Pattern pattern;
  std::size_t ranks;  // of the published file
  std::vector<std::pair<std::uint32_t, std::string>> special;
};

std::vector<std::pair<std::uint32_t, std::string>> llama3_special() {
  std::vector<std::pair<std::uint32_t, std::string>> out{{0, "<|begin_of_text|>"},
                                                         {1, "<|end_of_text|>"},
                                                         {2, "<|reserved_special_token_0|>"},
                                                         {3, "<|reserved_special_token_1|>"},
                                                         {4, "<|finetune_right_pad_id|>"},
                                                         {5, "<|reserved_special_token_2|>"},
                                                         {6, "<|start_header_id|>"},
                                                         {7, "<|end_header_id|>"},
                                                         {8, "<|eom_id|>"},
                                                         {9, "<|eot_id|>"},
                                                         {10, "<|python_tag|>"}};
  for (std::uint32_t i = 11; i < 256; ++i) {
    out.emplace_back(i, format("<|reserved_special_token_{}|>", i - 8));
  }
  return out;
}

const std::vector<Encoding>& encodings() {
  using scan::Pattern;
  static const std::vector<Encoding> all{
      {"cl100k",
       Pattern::tiktoken_cl100k,
       100256,
       {{1, "<|endoftext|>"}, {2, "<|fim_prefix|>"}, {3, "<|fim_middle|>"}, {4, "<|fim_suffix|>"}, {20, "<|endofprompt|>"}}},
      {"o200k", Pattern::o200k, 199998, {{1, "<|endoftext|>"}, {20, "<|endofprompt|>"}}},
      {"r50k", Pattern::tiktoken_gpt2, 50256, {{0, "<|endoftext|>"}}},
      {"gpt2", Pattern::tiktoken_gpt2, 50256, {{0, "<|endoftext|>"}}},
      {"llama", Pattern::cl100k, 128000, llama3_special()},
  };
  return all;
}

const Encoding& find_encoding(const fs::path& file, std::size_t ranks) {
  const std::string name = lower(file.filename().string());
  for (const Encoding& encoding : encodings()) {
    if (name.find(encoding.name) != std::string::npos || ranks == encoding.ranks) {
      return encoding;
    }
  }
  for (const Encoding& encoding : encodings()) {  // Meta's name of the rank file of Llama 3
    if (name == "tokenizer.model" && std::string_view(encoding.name) == "llama") {
      return encoding;
    }
  }
  fail(Code::data,
       "{}: a rank file of tiktoken does not say how text is split. Put {}.json beside it, {\"pattern\": \"cl100k\", \"special_tokens\": "
       "{\"<|endoftext|>\": {}}}, with pattern gpt2, cl100k, qwen2, o200k, tekken or a regular expression; files with the name or the "
       "number "
       "of ranks of gpt2, r50k, cl100k, o200k and Llama 3 need none",
       file, file.filename().string(), ranks);
}

Vocabulary read_ranks(const std::string& content, const fs::path& file) {
  Vocabulary out;
  std::size_t number = 0;
  std::string_view rest(content);
  while (!rest.empty()) {
    ++number;
    const std::size_t stop = rest.find('\n');
    const std::string_view line = trim(rest.substr(0, stop));
    rest.remove_prefix(stop == std::string_view::npos ? rest.size() : stop + 1);
    if (line.empty()) {
      continue;
    }
    const std::string where = format("{}, line {}", file, number);
    const std::size_t blank = line.find(' ');
    std::uint32_t rank = 0;
    const char* end = line.data() + line.size();
    const bool good =
        blank != std::string_view::npos && std::from_chars(line.data() + blank + 1, end, rank).ptr == end && blank + 1 < line.size();
    KF_CHECK(good, Code::data, "{}: {} is not a token in base64, a blank and its rank", where, kf::quoted(line.substr(0, 80)));
    const std::string token = decode_base64(line.substr(0, blank), where);
    KF_CHECK(!token.empty() && !out.find(token) && !out.token(rank), Code::data, "{}: the token or the rank {} is there already, or empty",
             where, rank);
    out.add(token, rank);
  }
  return out;
}

std::optional<std::int64_t> id_of(const RankSpec& spec, std::string_view name) {
  for (const auto& [id, text] : spec.special) {
    if (text == name) {
      return id;
    }
  }
  return std::nullopt;
}

/// FILE.json: {"pattern": NAME or a regular expression, "special_tokens": {NAME: ID}, "bos_token": NAME}. What it names goes to `ids`.
void read_sidecar(const fs::path& sidecar, RankSpec& spec, SpecialIds& ids) {
  const json::Value root = json::parse(read_input(sidecar, Code::data), sidecar.string());
  const json::Place place(root, sidecar.string() + ": ");
  place.warn_unknown({"pattern", "special_tokens", "bos_token", "eos_token", "pad_token"});
  spec.pattern = place.at("pattern").as_string();
  spec.where = place.path("pattern");
  if (const auto known = scan::pattern_named(spec.pattern)) {
    spec.pattern = scan::pattern_text(*known);
  }
  if (place.has("special_tokens")) {
    for (const auto& member : place.at("special_tokens").as_object()) {
      const json::Place id(member.second, place.path("special_tokens") + "[" + kf::quoted(member.first) + "]");
      spec.special[static_cast<std::uint32_t>(id.as_integer(0, (1 << 26) - 1))] = member.first;
    }
  }
  const std::pair<const char*, std::optional<std::int64_t>*> named[] = {
      {"bos_token", &ids.bos}, {"eos_token", &ids.eos}, {"pad_token", &ids.pad}};
  for (const auto& [key, id] : named) {
    if (place.has(key)) {
      *id = id_of(spec, place.at(key).as_string());
      KF_CHECK(*id, Code::data, "{} = {} is none of the special_tokens", place.path(key), kf::quoted(place.at(key).as_string()));
    }
  }
}

}  // namespace

std::unique_ptr<FileTokenizer> open_tiktoken(const std::string& content, const fs::path& file) {
  RankSpec spec;
  spec.kind = "tiktoken";
  spec.where = file.string();
  spec.tokens = read_ranks(content, file);
  const fs::path sidecar = file.string() + ".json";
  std::error_code ignored;
  std::string hashed = content;
  SpecialIds said;
  bool begins = false;  // whether its library puts BOS in front of a text
  if (fs::exists(sidecar, ignored)) {
    read_sidecar(sidecar, spec, said);
    hashed += read_input(sidecar, Code::data);
  } else {
    const Encoding& encoding = find_encoding(file, spec.tokens.size());
    spec.pattern = scan::pattern_text(encoding.pattern);
    for (const auto& [distance, name] : encoding.special) {
      spec.special[static_cast<std::uint32_t>(spec.tokens.size()) + distance] = name;
    }
    begins = std::string_view(encoding.name) == "llama";
  }
  try {
    SpecialIds ids = special_ids(file.parent_path(), [&](std::string_view name) { return id_of(spec, name); });
    const auto first = [](const auto& wins, const auto& other) { return wins ? wins : other; };
    ids = {first(said.bos, ids.bos), first(said.eos, ids.eos), first(said.pad, ids.pad)};
    PostProcessor around = surrounding(file.parent_path(), ids, {begins, false});
    spec.before = std::move(around.before);
    spec.after = std::move(around.after);
    return std::make_unique<RankTokenizer>(std::move(spec), hashed, ids);
  } catch (Error& error) {
    throw error.context("in " + file.string());
  }
}

}  // namespace kf
