// tekken.json of Mistral: ranks as tiktoken has them, behind a block of special tokens.

#include "core/error.h"
#include "data/tokenizer/charsmap.h"
#include "data/tokenizer/json.h"
#include "data/tokenizer/rank_tokenizer.h"

namespace kf {
namespace {

/// Where the file does not name its special tokens (version 3).
constexpr const char* kFirstSpecial[] = {
    "<unk>",           "<s>",          "</s>",  "[INST]",   "[/INST]",  "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]", "[TOOL_CALLS]", "<pad>", "[PREFIX]", "[MIDDLE]", "[SUFFIX]"};

std::map<std::uint32_t, std::string> special_tokens(const json::Place& root, std::uint32_t count) {
  std::map<std::uint32_t, std::string> out;
  for (std::uint32_t i = 0; i < count; ++i) {
    out[i] = format("<SPECIAL_{}>", i);
  }
  if (!root.has("special_tokens")) {
    for (std::uint32_t i = 0; i < std::min<std::uint32_t>(count, std::size(kFirstSpecial)); ++i) {
      out[i] = kFirstSpecial[i];
    }
    return out;
  }
  const json::Place list = root.at("special_tokens");
  for (std::size_t i = 0; i < list.size(); ++i) {
    out[static_cast<std::uint32_t>(list.at(i).at("rank").as_integer(0, std::int64_t{count} - 1))] = list.at(i).at("token_str").as_string();
  }
  return out;
}

std::optional<std::int64_t> id_of(const std::map<std::uint32_t, std::string>& special, std::string_view name) {
  for (const auto& [id, text] : special) {
    if (text == name) {
      return id;
    }
  }
  return std::nullopt;
}

}  // namespace

std::unique_ptr<FileTokenizer> open_tekken(const json::Value& value, std::string_view content, const fs::path& file) {
  const json::Place root(value, file.string() + ": ");
  const json::Place config = root.at("config");
  const json::Place vocab = root.at("vocab");
  const auto special_count = static_cast<std::uint32_t>(config.at("default_num_special_tokens").as_integer(0, 1 << 20));
  const auto size = config.at("default_vocab_size").as_integer(special_count, 1 << 26);
  const auto inner = std::min<std::size_t>(static_cast<std::size_t>(size) - special_count, vocab.size());
  RankSpec spec;
  spec.kind = "tekken";
  spec.pattern = config.at("pattern").as_string();
  spec.where = config.path("pattern");
  for (std::size_t i = 0; i < inner; ++i) {
    const json::Place entry = vocab.at(i);
    const auto rank = static_cast<std::uint32_t>(entry.at("rank").as_integer(0, static_cast<std::int64_t>(inner) - 1));
    const json::Place bytes = entry.at("token_bytes");
    spec.tokens.add(decode_base64(bytes.as_string(), bytes.path()), special_count + rank);
  }
  spec.special = special_tokens(root, special_count);
  spec.special_in_text = false;  // mistral-common never reads them from text
  const SpecialIds ids{id_of(spec.special, "<s>"), id_of(spec.special, "</s>"), id_of(spec.special, "<pad>")};
  if (ids.bos && ids.eos) {
    spec.before = {static_cast<std::uint32_t>(*ids.bos)};  // and nothing behind, unless it is a document to learn from: data.add_eos
  }
  try {
    return std::make_unique<RankTokenizer>(std::move(spec), content, ids);
  } catch (Error& error) {
    throw error.context("in " + file.string());
  }
}

}  // namespace kf
