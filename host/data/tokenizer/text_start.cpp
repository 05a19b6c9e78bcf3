#include "data/tokenizer/text_start.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "config/tree/json.h"
#include "core/error.h"
#include "core/text.h"
#include "data/tokenizer/json_member.h"
#include "data/tokenizer/post_processor.h"

namespace kf {
namespace {

using config::Array;
using config::Node;
using config::Table;

constexpr const char* kFile = "tokenizer.json";
constexpr const char* kConfig = "tokenizer_config.json";
constexpr const char* kPost = "post_processor";

std::string text_at(const Table& table, const char* key) {
  const Node* const node = table.find(key);
  const auto* const text = node != nullptr ? std::get_if<std::string>(&node->value) : nullptr;
  return text != nullptr ? *text : "";
}

struct Bos {
  std::int64_t id;
  std::string token;
};

Node named(const char* kind, const std::string& id) {
  Table inside, out;
  inside["id"] = Node(id);
  inside["type_id"] = Node(std::int64_t{0});
  out[kind] = Node(std::move(inside));
  return Node(std::move(out));
}

/// {"ids": [1]} of the token that a piece of a template names.
bool is_bos(const Node& piece, const Table& tokens, const Bos& bos) {
  const Node* const special = piece.table() != nullptr ? piece.table()->find("SpecialToken") : nullptr;
  const Node* const token = special != nullptr && special->table() != nullptr ? tokens.find(text_at(*special->table(), "id")) : nullptr;
  const Node* const ids = token != nullptr && token->table() != nullptr ? token->table()->find("ids") : nullptr;
  return ids != nullptr && *ids == Node(Array{Node(bos.id)});
}

void put_in_template(Table& spec, const Bos& bos, bool with_bos) {
  Node& tokens = spec["special_tokens"];
  tokens = tokens.table() != nullptr ? tokens : Node(Table());
  for (const char* key : {"single", "pair"}) {
    Node* const node = spec.find(key);
    if (node == nullptr || node->array() == nullptr) {
      continue;
    }
    std::erase_if(*node->array(), [&](const Node& piece) { return is_bos(piece, *tokens.table(), bos); });
    if (with_bos) {
      node->array()->insert(node->array()->begin(), named("SpecialToken", bos.token));
    }
  }
  if (with_bos) {
    Table said;
    said["id"] = Node(bos.token);
    said["ids"] = Node(Array{Node(bos.id)});
    said["tokens"] = Node(Array{Node(bos.token)});
    (*tokens.table())[bos.token] = Node(std::move(said));
  }
}

/// A template that adds nothing.
Table plain_template() {
  Table out;
  out["type"] = Node(std::string("TemplateProcessing"));
  out["single"] = Node(Array{named("Sequence", "A")});
  out["pair"] = Node(Array{named("Sequence", "A"), named("Sequence", "B")});
  out["special_tokens"] = Node(Table());
  return out;
}

/// Changes every template in `spec`; false where there is none.
bool put_in(Node& spec, const Bos& bos, bool with_bos) {
  const std::string type = spec.table() != nullptr ? text_at(*spec.table(), "type") : "";
  if (type == "TemplateProcessing") {
    put_in_template(*spec.table(), bos, with_bos);
    return true;
  }
  Node* const list = type == "Sequence" ? spec.table()->find("processors") : nullptr;
  bool found = false;
  for (std::size_t i = 0; list != nullptr && list->array() != nullptr && i < list->array()->size(); ++i) {
    found = put_in((*list->array())[i], bos, with_bos && !found) || found;
  }
  return found;
}

/// tokenizer.json with a post_processor that begins texts so; nothing where none of the known kinds does.
std::optional<std::string> started(const std::string& text, const std::string& name, const Bos& bos, bool with_bos) {
  const std::optional<std::string_view> there = json::member(text, kPost);
  Node post = there ? config::parse_json(*there, name) : Node();
  if (!put_in(post, bos, with_bos) && with_bos) {
    Table with = plain_template();
    put_in_template(with, bos, true);
    if (post.is_null()) {
      post = Node(std::move(with));
    } else {
      Table all;
      all["type"] = Node(std::string("Sequence"));
      all["processors"] = Node(Array{post, Node(std::move(with))});
      post = Node(std::move(all));
    }
  }
  const std::string value = config::to_json(post);
  const json::Value read = json::parse(value, name);
  const std::vector<std::uint32_t> before = read.is_null() ? std::vector<std::uint32_t>() : read_post_processor({read, name}).before;
  if ((!before.empty() && before.front() == bos.id) != with_bos) {
    return std::nullopt;
  }
  return json::with_member(text, kPost, value);
}

/// add_bos_token, and what becomes of other keys of its kind where it is there.
std::string config_with(const std::string& text, const Tokenizer& tokenizer, const Bos& bos, bool with_bos) {
  std::vector<std::uint32_t> around;
  tokenizer.append("a", around, {SpecialText::text, Surround::text});
  const std::optional<std::int64_t> eos = tokenizer.eos_id();
  const bool ends = eos && !around.empty() && around.back() == *eos;
  const auto word = [](bool value) { return value ? "true" : "false"; };
  std::string out = json::with_member(text, "add_eos_token", word(ends));  // else readers take it for false once the other is said
  out = json::with_member(out, "add_bos_token", word(with_bos));
  const std::string_view named = json::member(out, "bos_token").value_or("null");
  return with_bos && named == "null" ? json::with_member(out, "bos_token", json::quote(bos.token)) : out;
}

}  // namespace

StartedFiles start_texts(const std::vector<fs::path>& files, const Tokenizer& tokenizer, bool with_bos) {
  StartedFiles out;
  const std::optional<std::int64_t> id = tokenizer.bos_id();
  KF_CHECK(id, Code::data, "the tokenizer has no id that begins texts");
  const std::vector<std::int64_t> begun = encode_prompt(tokenizer, "a");
  if (files.empty() || (!begun.empty() && begun.front() == *id) == with_bos) {
    return out;
  }
  const Bos bos{*id, tokenizer.token(*id).value_or("")};
  const auto text_of = [&](const char* name) {
    const auto found = std::find_if(files.begin(), files.end(), [&](const fs::path& file) { return file.filename() == name; });
    return found != files.end() ? std::optional(read_file(*found)) : std::nullopt;
  };
  if (const std::optional<std::string> text = text_of(kFile)) {
    const std::optional<std::string> changed = started(*text, kFile, bos, with_bos);
    out.certain = changed.has_value();
    if (changed) {
      out.changed[kFile] = *changed;
    }
  } else {
    out.certain = text_of("vocab.json").has_value();
  }
  out.changed[kConfig] = config_with(text_of(kConfig).value_or(""), tokenizer, bos, with_bos);
  return out;
}

}  // namespace kf
