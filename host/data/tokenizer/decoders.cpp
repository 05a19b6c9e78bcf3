#include "data/tokenizer/decoders.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>

#include "core/error.h"
#include "data/tokenizer/byte_letters.h"
#include "data/tokenizer/regex.h"
#include "data/tokenizer/unicode.h"

namespace kf {
namespace {

using Tokens = std::vector<std::string>;

class Function final : public Decoder {
 public:
  explicit Function(std::function<void(Tokens&)> body, bool byte_level = false) : body_(std::move(body)), byte_level_(byte_level) {}
  void apply(Tokens& tokens) const override { body_(tokens); }
  bool is_byte_level() const override { return byte_level_; }

 private:
  std::function<void(Tokens&)> body_;
  bool byte_level_;
};

std::unique_ptr<Decoder> function(std::function<void(Tokens&)> body, bool byte_level = false) {
  return std::make_unique<Function>(std::move(body), byte_level);
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  std::string out;
  std::size_t done = 0;
  for (std::size_t at = text.find(from); !from.empty() && at != std::string::npos; at = text.find(from, done)) {
    out.append(text, done, at - done).append(to);
    done = at + from.size();
  }
  text = out.append(text, done);
}

/// Hugging Face's clean_up: blanks before punctuation and parts of contractions go.
void clean_up(std::string& text) {
  constexpr std::pair<const char*, const char*> rules[] = {{" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
                                                           {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
                                                           {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : rules) {
    replace_all(text, from, to);
  }
}

void fuse(Tokens& tokens) {
  std::string all;
  for (const std::string& token : tokens) {
    all += token;
  }
  tokens.assign(1, all);
}

std::optional<char> fallback_byte(const std::string& token) {
  unsigned value = 0;
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') {
    return std::nullopt;
  }
  const auto [stop, error] = std::from_chars(token.data() + 3, token.data() + 5, value, 16);
  return error == std::errc() && stop == token.data() + 5 ? std::optional(static_cast<char>(value)) : std::nullopt;
}

/// Runs of byte tokens become characters, or one U+FFFD a byte where they are no UTF-8.
void byte_fallback(Tokens& tokens) {
  Tokens out;
  std::string bytes;
  const auto flush = [&] {
    if (is_utf8(bytes)) {
      if (!bytes.empty()) {
        out.push_back(bytes);
      }
    } else {
      out.insert(out.end(), bytes.size(), std::string(unicode::kReplacement));
    }
    bytes.clear();
  };
  for (std::string& token : tokens) {
    if (const std::optional<char> byte = fallback_byte(token)) {
      bytes += *byte;
    } else {
      flush();
      out.push_back(std::move(token));
    }
  }
  flush();
  tokens = std::move(out);
}

std::vector<std::string> characters(const std::string& token) {
  std::vector<std::string> out;
  const char* end = token.data() + token.size();
  for (const char* p = token.data(); p < end;) {
    const std::size_t size = unicode::decode(p, end).size;
    out.emplace_back(p, size);
    p += size;
  }
  return out;
}

void strip(std::string& token, const std::string& content, std::size_t start, std::size_t stop) {
  const std::vector<std::string> chars = characters(token);
  std::size_t begin = 0;
  while (begin < std::min(start, chars.size()) && chars[begin] == content) {
    ++begin;
  }
  std::size_t end = chars.size();
  while (chars.size() - end < stop && end > begin && chars[end - 1] == content) {
    --end;
  }
  token.clear();
  for (std::size_t i = begin; i < end; ++i) {
    token += chars[i];
  }
}

std::unique_ptr<Decoder> make_chain(const json::Place& spec) {
  auto parts = std::make_shared<std::vector<std::unique_ptr<Decoder>>>();
  const json::Place list = spec.at("decoders");
  for (std::size_t i = 0; i < list.size(); ++i) {
    parts->push_back(make_decoder(list.at(i)));
  }
  return function([parts](Tokens& tokens) {
    for (const auto& part : *parts) {
      part->apply(tokens);
      if (part->is_byte_level()) {  // alone it gives bytes; the parts behind it work on characters
        std::string storage;
        tokens.front() = std::string(unicode::valid(tokens.front(), storage));
      }
    }
  });
}

std::unique_ptr<Decoder> make_metaspace(const json::Place& spec) {
  const std::string replacement = spec.string_or("replacement", "\xe2\x96\x81");
  const bool prepends = spec.string_or("prepend_scheme", spec.bool_or("add_prefix_space", true) ? "always" : "never") != "never";
  return function([replacement, prepends](Tokens& tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      replace_all(tokens[i], replacement, i == 0 && prepends ? "" : " ");
    }
  });
}

std::unique_ptr<Decoder> make_wordpiece(const json::Place& spec) {
  return function([prefix = spec.string_or("prefix", "##"), cleanup = spec.bool_or("cleanup", true)](Tokens& tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (i > 0) {
        tokens[i] = tokens[i].starts_with(prefix) ? tokens[i].substr(prefix.size()) : " " + tokens[i];
      }
      if (cleanup) {
        clean_up(tokens[i]);
      }
    }
  });
}

std::unique_ptr<Decoder> make_replace(const json::Place& spec) {
  const std::string content = spec.at("content").as_string();
  const json::Place pattern = spec.at("pattern");
  if (pattern.has("String")) {
    return function([from = pattern.at("String").as_string(), content](Tokens& tokens) {
      std::for_each(tokens.begin(), tokens.end(), [&](std::string& token) { replace_all(token, from, content); });
    });
  }
  const json::Place written = pattern.at("Regex");
  KF_CHECK(content.find('$') == std::string::npos, Code::data,
           "{}: groups ($1) in the replacement of a regular expression are not supported", spec.path("content"));
  auto regex = std::make_shared<Regex>(written.as_string(), scan::Dialect::onig, written.path());
  return function([regex, content](Tokens& tokens) {
    for (std::string& token : tokens) {
      std::string out;
      std::size_t from = 0;
      regex->each_match(token, [&](std::size_t begin, std::size_t end) {
        out.append(token, from, begin - from).append(content);
        from = end;
        return true;
      });
      token = out.append(token, from);
    }
  });
}

std::unique_ptr<Decoder> make_ctc(const json::Place& spec) {
  return function([pad = spec.string_or("pad_token", "<pad>"), delimiter = spec.string_or("word_delimiter_token", "|"),
                   cleanup = spec.bool_or("cleanup", true)](Tokens& tokens) {
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    for (std::string& token : tokens) {
      replace_all(token, pad, "");
      if (cleanup) {
        clean_up(token);
        replace_all(token, delimiter, " ");
      }
    }
    tokens.erase(std::remove(tokens.begin(), tokens.end(), std::string()), tokens.end());
  });
}

std::unique_ptr<Decoder> make_bpe_decoder(const json::Place& spec) {
  return function([suffix = spec.string_or("suffix", "</w>")](Tokens& tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      replace_all(tokens[i], suffix, i + 1 == tokens.size() ? "" : " ");
    }
  });
}

}  // namespace

std::string byte_level_bytes(std::string_view token) {
  const std::optional<std::string> bytes = byte_letters::read(token);
  return bytes ? *bytes : std::string(token);
}

std::unique_ptr<Decoder> make_decoder(const json::Place& spec) {
  const std::string& type = spec.at("type").as_string();
  if (type == "Sequence") {
    return make_chain(spec);
  }
  if (type == "ByteLevel") {
    return function(
        [](Tokens& tokens) {
          std::for_each(tokens.begin(), tokens.end(), [](std::string& token) { token = byte_level_bytes(token); });
          fuse(tokens);
        },
        true);
  }
  if (type == "Metaspace") {
    return make_metaspace(spec);
  }
  if (type == "WordPiece") {
    return make_wordpiece(spec);
  }
  if (type == "BPEDecoder") {
    return make_bpe_decoder(spec);
  }
  if (type == "ByteFallback") {
    return function(byte_fallback);
  }
  if (type == "Fuse") {
    return function(fuse);
  }
  if (type == "Strip") {
    const auto count = [&](std::string_view name) {
      return spec.has(name) ? static_cast<std::size_t>(spec.at(name).as_integer(0, 1 << 30)) : 0;
    };
    return function([content = spec.at("content").as_string(), start = count("start"), stop = count("stop")](Tokens& tokens) {
      std::for_each(tokens.begin(), tokens.end(), [&](std::string& token) { strip(token, content, start, stop); });
    });
  }
  if (type == "Replace") {
    return make_replace(spec);
  }
  if (type == "CTC") {
    return make_ctc(spec);
  }
  fail(Code::data,
       "{} = {} is not supported; there are BPEDecoder, ByteFallback, ByteLevel, CTC, Fuse, Metaspace, Replace, Sequence, Strip, WordPiece",
       spec.path("type"), kf::quoted(type));
}

}  // namespace kf
