#include <algorithm>
#include <limits>

#include "core/error.h"
#include "data/tokenizer/models.h"
#include "data/tokenizer/unicode.h"

namespace kf {
namespace {

/// How much worse an unknown character is than the worst token (SentencePiece, Hugging Face).
constexpr double kUnknownPenalty = 10.0;
constexpr std::uint32_t kUnset = std::numeric_limits<std::uint32_t>::max();

/// The most probable way to cut a text into tokens (Viterbi over the ends of tokens).
class Unigram final : public TextModel {
 public:
  Unigram(const json::Place& spec, const Vocabulary& vocabulary) : vocabulary_(vocabulary) {
    const json::Place list = spec.at("vocab");
    double worst = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < list.size(); ++i) {
      const json::Place entry = list.at(i);
      scores_.push_back(entry.at(1).as_number());
      worst = std::min(worst, scores_.back());
      trie_.add(entry.at(0).as_string(), static_cast<std::uint32_t>(i), true);
    }
    unknown_score_ = worst - kUnknownPenalty;
    if (spec.has("unk_id")) {
      unknown_ = static_cast<std::uint32_t>(spec.at("unk_id").as_integer(0, static_cast<std::int64_t>(list.size()) - 1));
    }
    if (spec.bool_or("byte_fallback", false)) {
      bytes_ = byte_tokens(vocabulary);
    }
  }

  void encode(std::string_view piece, std::vector<std::uint32_t>& out, Scratch& scratch) const override {
    search(piece, scratch);
    // Backwards over the best path: unknown neighbours are one token, which may be a known one after all.
    std::vector<std::pair<std::size_t, std::size_t>>& parts = parts_of(scratch);
    std::size_t end = piece.size();
    std::size_t unknown_end = 0;
    while (end > 0) {
      const std::size_t begin = scratch.from[end];
      const bool is_unknown = unknown_ && scratch.ids[end] == *unknown_;
      if (is_unknown && unknown_end > 0) {
        parts.back().first = begin;
      } else {
        parts.emplace_back(begin, end);
      }
      unknown_end = is_unknown ? end : 0;
      end = begin;
    }
    std::for_each(parts.rbegin(), parts.rend(), [&](const auto& part) { put(piece.substr(part.first, part.second - part.first), out); });
  }

 private:
  static std::vector<std::pair<std::size_t, std::size_t>>& parts_of(Scratch& /*scratch*/) {
    thread_local std::vector<std::pair<std::size_t, std::size_t>> parts;
    parts.clear();
    return parts;
  }

  void search(std::string_view piece, Scratch& scratch) const {
    scratch.scores.assign(piece.size() + 1, 0);
    scratch.from.assign(piece.size() + 1, kUnset);
    scratch.ids.assign(piece.size() + 1, 0);
    const auto offer = [&](std::size_t begin, std::size_t end, double score, std::uint32_t id) {
      if (scratch.from[end] == kUnset || score > scratch.scores[end]) {
        scratch.scores[end] = score;
        scratch.from[end] = static_cast<std::uint32_t>(begin);
        scratch.ids[end] = id;
      }
    };
    const char* stop = piece.data() + piece.size();
    for (std::size_t at = 0; at < piece.size();) {
      const std::size_t size = unicode::decode(piece.data() + at, stop).size;
      const double so_far = scratch.scores[at];
      bool single = false;
      trie_.prefixes(piece.substr(at), [&](std::size_t length, std::uint32_t id) {
        offer(at, at + length, scores_[id] + so_far, id);
        single = single || length == size;
      });
      if (!single) {
        KF_CHECK(unknown_, Code::data, "the character {} is not in the vocabulary, which has no unknown token (unk_id)",
                 kf::quoted(piece.substr(at, size)));
        offer(at, at + size, unknown_score_ + so_far, *unknown_);
      }
      at += size;
    }
  }

  void put(std::string_view token, std::vector<std::uint32_t>& out) const {
    if (const auto id = vocabulary_.find(token)) {
      out.push_back(*id);
      return;
    }
    const bool as_bytes = !bytes_.empty() && std::all_of(token.begin(), token.end(),
                                                         [&](char c) { return bytes_[static_cast<unsigned char>(c)].has_value(); });
    if (!as_bytes) {
      out.push_back(*unknown_);
      return;
    }
    for (const char c : token) {
      out.push_back(*bytes_[static_cast<unsigned char>(c)]);
    }
  }

  const Vocabulary& vocabulary_;
  Trie trie_;
  std::vector<double> scores_;
  double unknown_score_ = 0;
  std::optional<std::uint32_t> unknown_;
  std::vector<std::optional<std::uint32_t>> bytes_;
};

}  // namespace

std::unique_ptr<TextModel> make_unigram(const json::Place& spec, const Vocabulary& vocabulary) {
  spec.warn_unknown({"type", "unk_id", "vocab", "byte_fallback"});
  return std::make_unique<Unigram>(spec, vocabulary);
}

}  // namespace kf
