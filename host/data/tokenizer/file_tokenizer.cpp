#include "data/tokenizer/file_tokenizer.h"

#include <algorithm>

#include "core/error.h"
#include "core/sha256.h"
#include "data/tokenizer/json.h"

namespace kf {
namespace {

/// A change in what is hashed, or in how ids come about, changes this and with it every cache key.
constexpr const char* kVersion = "kf tokenizer 1";

/// The name under `key`: a string, or an object with a "content".
std::optional<std::string> named(const fs::path& file, const char* key) {
  std::error_code ignored;
  if (!fs::exists(file, ignored)) {
    return std::nullopt;
  }
  const json::Value root = json::parse(read_file(file), file.string());
  const json::Place place(root, file.string() + ": ");
  if (!place.has(key)) {
    return std::nullopt;
  }
  const json::Place value = place.at(key);
  return value->type == json::Value::Type::object ? value.at("content").as_string() : value.as_string();
}

std::optional<std::int64_t> find_special(const fs::path& folder, const char* key, std::initializer_list<const char*> usual,
                                         const FindToken& find) {
  for (const char* file : {"tokenizer_config.json", "special_tokens_map.json"}) {
    if (const std::optional<std::string> name = named(folder / file, key)) {
      const std::optional<std::int64_t> id = find(*name);
      KF_CHECK(id, Code::data, "{}: {} is {}, which is no token of the tokenizer", folder / file, key, kf::quoted(*name));
      return id;
    }
  }
  for (const char* name : usual) {
    if (const std::optional<std::int64_t> id = find(name)) {
      return id;
    }
  }
  return std::nullopt;
}

}  // namespace

SpecialIds special_ids(const fs::path& folder, const FindToken& find) {
  return {find_special(folder, "bos_token", {"<|begin_of_text|>", "<|startoftext|>", "<s>", "<bos>"}, find),
          find_special(folder, "eos_token", {"<|end_of_text|>", "<|endoftext|>", "</s>", "<eos>"}, find),
          find_special(folder, "pad_token", {"<pad>", "[PAD]", "<|pad|>"}, find)};
}

std::vector<std::int64_t> FileTokenizer::encode(std::string_view text) const {
  std::vector<std::uint32_t> ids;
  append(text, ids, {});
  return {ids.begin(), ids.end()};
}

void FileTokenizer::identify(std::string_view kind, std::string_view content, const SpecialIds& special) {
  special_ = special;
  const auto text = [](const std::optional<std::int64_t>& id) { return id ? std::to_string(*id) : std::string("-"); };
  hash_ = Sha256()
              .add(format("{}\n{}\n{} {} {}\n", kVersion, kind, text(special.bos), text(special.eos), text(special.pad)))
              .add(content)
              .hex();
}

std::vector<std::uint32_t> FileTokenizer::checked(std::span<const std::int64_t> ids) const {
  std::vector<std::uint32_t> out;
  out.reserve(ids.size());
  const std::int64_t size = vocab_size();
  const std::int64_t end = std::max(end_, size);
  for (const std::int64_t id : ids) {
    KF_CHECK(id >= 0 && id < end, Code::data, "id {} cannot be decoded: ids go from 0 to {}", id, end - 1);
    if (id < size) {
      out.push_back(static_cast<std::uint32_t>(id));
    }
  }
  return out;
}

}  // namespace kf
