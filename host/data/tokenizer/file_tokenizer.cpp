#include "data/tokenizer/file_tokenizer.h"

#include <algorithm>
#include <iterator>

#include "core/error.h"
#include "core/input_file.h"
#include "core/log.h"
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
  const json::Value root = json::parse(read_input(file, Code::data), file.string());
  const json::Place place(root, file.string() + ": ");
  if (!place.has(key)) {
    return std::nullopt;
  }
  const json::Place value = place.at(key);
  return value->type == json::Value::Type::object ? value.at("content").as_string() : value.as_string();
}

/// true, false, or nothing where the file or the key is not there, or null.
std::optional<bool> flag(const fs::path& file, const char* key) {
  std::error_code ignored;
  if (!fs::exists(file, ignored)) {
    return std::nullopt;
  }
  const json::Value root = json::parse(read_input(file, Code::data), file.string());
  const json::Place place(root, file.string() + ": ");
  return place.has(key) ? std::optional(place.bool_or(key, false)) : std::nullopt;
}

/// Classes of encoders with decoders, which put EOS behind a text and nothing in front.
bool ends_texts_alone(std::string_view tokenizer_class) {
  static constexpr const char* kStarts[] = {"T5", "MT5", "UMT5", "Pegasus"};
  return std::any_of(std::begin(kStarts), std::end(kStarts), [&](const char* start) { return tokenizer_class.starts_with(start); });
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

PostProcessor surrounding(const fs::path& folder, const SpecialIds& ids, Surroundings usual) {
  const fs::path file = folder / "tokenizer_config.json";
  if (const std::optional<std::string> kind = named(file, "tokenizer_class"); kind && ends_texts_alone(*kind)) {
    usual = {false, true};
  }
  PostProcessor out;
  const auto add = [&](const char* key, bool fallback, const std::optional<std::int64_t>& id, std::vector<std::uint32_t>& where) {
    const std::optional<bool> asked = flag(file, key);
    KF_CHECK(id || !asked.value_or(false), Code::data, "{}: {} is true, and the tokenizer has no such token", file, key);
    if (asked.value_or(fallback) && id) {
      where.push_back(static_cast<std::uint32_t>(*id));
    }
  };
  add("add_bos_token", usual.bos, ids.bos, out.before);
  add("add_eos_token", usual.eos, ids.eos, out.after);
  return out;
}

void warn_of_other_surrounding(const fs::path& folder, const SpecialIds& ids, const PostProcessor& post) {
  const fs::path file = folder / "tokenizer_config.json";
  const auto compare = [&](const char* key, const std::optional<std::int64_t>& id, const std::vector<std::uint32_t>& there) {
    const std::optional<bool> asked = flag(file, key);
    const bool has = id && std::find(there.begin(), there.end(), static_cast<std::uint32_t>(*id)) != there.end();
    if (asked && *asked != has) {
      log::info("{}: {} = {} is not applied: the post_processor of tokenizer.json decides, and it {} that token", file, key, *asked,
                has ? "adds" : "does not add");
    }
  };
  compare("add_bos_token", ids.bos, post.before);
  compare("add_eos_token", ids.eos, post.after);
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
