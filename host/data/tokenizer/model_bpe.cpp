#include <map>

#include "core/error.h"
#include "data/tokenizer/models.h"
#include "data/tokenizer/unicode.h"

namespace kf {
namespace {

std::pair<std::string, std::string> read_merge(const json::Place& place) {
  if (place->type == json::Value::Type::array) {
    KF_CHECK(place.size() == 2, Code::data, "{} has {} parts; a merge has two", place.path(), place.size());
    return {place.at(0).as_string(), place.at(1).as_string()};
  }
  const std::string& text = place.as_string();
  const std::size_t blank = text.find(' ');
  KF_CHECK(blank != std::string::npos && text.find(' ', blank + 1) == std::string::npos, Code::data,
           "{} = {} is no merge: two tokens with one blank between", place.path(), kf::quoted(text));
  return {text.substr(0, blank), text.substr(blank + 1)};
}

class CharacterBpe final : public TextModel {
 public:
  CharacterBpe(const BpeSpec& spec, const Vocabulary& vocabulary, const std::string& where)
      : vocabulary_(vocabulary), merges_(make_merges(spec, vocabulary, where)), spec_(spec) {
    spec_.merges.clear();
    if (spec.byte_fallback) {
      bytes_ = byte_tokens(vocabulary);
    }
    if (spec.unknown) {
      unknown_ = vocabulary.find(*spec.unknown);
      KF_CHECK(unknown_, Code::data, "{}.unk_token = {} is not in the vocabulary", where, kf::quoted(*spec.unknown));
    }
  }

  void encode(std::string_view piece, std::vector<std::uint32_t>& out, Scratch& scratch) const override {
    if (spec_.ignore_merges) {
      if (const auto whole = vocabulary_.find(piece)) {
        out.push_back(*whole);
        return;
      }
    }
    std::vector<std::uint32_t>& ids = scratch.ids;
    ids.clear();
    bool pending = false;  // an unknown character whose id is not in `ids` yet
    std::string spelled;
    const char* end = piece.data() + piece.size();
    for (const char* p = piece.data(); p < end;) {
      std::string_view character(p, unicode::decode(p, end).size);
      p += character.size();
      if (!spec_.prefix.empty() || !spec_.suffix.empty()) {
        spelled = (p - character.size() == piece.data() ? "" : spec_.prefix) + std::string(character) + (p == end ? spec_.suffix : "");
        character = spelled;
      }
      if (const auto id = vocabulary_.find(character)) {
        flush(pending, ids);
        ids.push_back(*id);
      } else if (!add_bytes(character, ids) && unknown_) {
        if (!spec_.fuse_unknown) {
          flush(pending, ids);
        }
        pending = true;
      }
    }
    flush(pending, ids);
    merges_.apply(ids, scratch.merges);
    out.insert(out.end(), ids.begin(), ids.end());
  }

 private:
  void flush(bool& pending, std::vector<std::uint32_t>& ids) const {
    if (pending) {
      ids.push_back(*unknown_);
      pending = false;
    }
  }
  bool add_bytes(std::string_view character, std::vector<std::uint32_t>& ids) const {
    if (bytes_.empty()) {
      return false;
    }
    for (const char c : character) {
      if (!bytes_[static_cast<unsigned char>(c)]) {
        return false;
      }
    }
    for (const char c : character) {
      ids.push_back(*bytes_[static_cast<unsigned char>(c)]);
    }
    return true;
  }

  const Vocabulary& vocabulary_;
  Merges merges_;
  BpeSpec spec_;
  std::vector<std::optional<std::uint32_t>> bytes_;
  std::optional<std::uint32_t> unknown_;
};

}  // namespace

std::vector<std::optional<std::uint32_t>> byte_tokens(const Vocabulary& vocabulary) {
  std::vector<std::optional<std::uint32_t>> out;
  constexpr std::string_view digits = "0123456789ABCDEF";
  for (std::size_t byte = 0; byte < 256; ++byte) {
    out.push_back(vocabulary.find(std::string("<0x") + digits[byte >> 4] + digits[byte & 15] + ">"));
  }
  return out;
}

BpeSpec read_bpe(const json::Place& spec) {
  spec.warn_unknown({"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", "byte_fallback",
                     "ignore_merges", "vocab", "merges"});
  if (spec.has("dropout")) {
    KF_CHECK(spec.at("dropout").as_number() == 0, Code::data,
             "{} = {}: dropout draws ids at random, which is not supported; set it to null", spec.path("dropout"),
             spec.at("dropout").as_number());
  }
  BpeSpec out;
  if (spec.has("unk_token")) {
    out.unknown = spec.at("unk_token").as_string();
  }
  out.prefix = spec.string_or("continuing_subword_prefix", "");
  out.suffix = spec.string_or("end_of_word_suffix", "");
  out.fuse_unknown = spec.bool_or("fuse_unk", false);
  out.byte_fallback = spec.bool_or("byte_fallback", false);
  out.ignore_merges = spec.bool_or("ignore_merges", false);
  const json::Place merges = spec.at("merges");
  for (std::size_t i = 0; i < merges.size(); ++i) {
    out.merges.push_back(read_merge(merges.at(i)));
  }
  return out;
}

Merges make_merges(const BpeSpec& spec, const Vocabulary& vocabulary, const std::string& where) {
  Merges out;
  for (std::size_t i = 0; i < spec.merges.size(); ++i) {
    const auto& [left, right] = spec.merges[i];
    const auto id_of = [&, number = i](const std::string& token) {
      const auto id = vocabulary.find(token);
      KF_CHECK(id, Code::data, "{}.merges[{}] needs the token {}, which is not in the vocabulary", where, number, kf::quoted(token));
      return *id;
    };
    KF_CHECK(right.size() >= spec.prefix.size(), Code::data, "{}.merges[{}]: {} is shorter than continuing_subword_prefix", where, i,
             kf::quoted(right));
    out.add(id_of(left), id_of(right), static_cast<std::uint32_t>(i), id_of(left + right.substr(spec.prefix.size())));
  }
  return out;
}

std::unique_ptr<TextModel> make_bpe(const BpeSpec& spec, const Vocabulary& vocabulary, const std::string& where) {
  return std::make_unique<CharacterBpe>(spec, vocabulary, where);
}

}  // namespace kf
