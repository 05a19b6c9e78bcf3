#include "core/hub_name.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <vector>

#include "core/text.h"

namespace kf {
namespace {

constexpr std::string_view kPrefix = "hf:";

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

bool is_part(std::string_view part) {
  return !part.empty() && part.size() <= 96 && is_word(part.front()) && part.find("..") == std::string_view::npos &&
         std::all_of(part.begin(), part.end(), [](char c) { return is_word(c) || c == '-' || c == '_' || c == '.'; });
}

bool names_a_file(std::string_view name) {
  constexpr std::array<std::string_view, 12> suffixes{".json", ".jsonl", ".model", ".tiktoken", ".safetensors", ".toml",
                                                      ".lua",  ".txt",   ".bin",   ".npy",      ".pt",          ".gguf"};
  return std::any_of(suffixes.begin(), suffixes.end(), [&](std::string_view suffix) { return name.ends_with(suffix); });
}

bool has_no_owner(std::string_view name) {
  constexpr std::array<std::string_view, 5> known{"gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl", "distilgpt2"};
  return std::find(known.begin(), known.end(), name) != known.end();
}

}  // namespace

bool is_revision(std::string_view text) {
  return !text.empty() && text.front() != '/' && text.find("..") == std::string_view::npos &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_word(c) || c == '-' || c == '_' || c == '.' || c == '/'; });
}

HubName data_set_name(std::string_view text) {
  const std::size_t at = text.find('@');
  return at == std::string_view::npos ? HubName{std::string(text), ""}
                                      : HubName{std::string(text.substr(0, at)), std::string(text.substr(at + 1))};
}

std::optional<HubName> hub_name(std::string_view text, bool words) {
  const bool said = text.starts_with(kPrefix);
  text.remove_prefix(said ? kPrefix.size() : 0);
  HubName out;
  if (const std::size_t at = text.find('@'); at != std::string_view::npos) {
    out.revision = text.substr(at + 1);
    text = text.substr(0, at);
  }
  out.name = text;
  const std::vector<std::string> parts = split(text, '/');
  const bool shaped = parts.size() <= 2 && std::all_of(parts.begin(), parts.end(), [](const std::string& part) { return is_part(part); });
  if (!shaped || !is_revision(out.revision)) {
    return std::nullopt;
  }
  if (said) {
    return out;
  }
  std::error_code error;
  const bool path = parts.size() == 2 ? std::filesystem::is_directory(parts[0], error) : !words && !has_no_owner(text);
  return path || names_a_file(text) ? std::nullopt : std::optional(out);
}

}  // namespace kf
