#include "data/tokenizer/train.h"

#include <algorithm>
#include <atomic>
#include <queue>
#include <thread>
#include <unordered_map>
#include <unordered_set>

#include "core/error.h"
#include "data/tokenizer/byte_letters.h"
#include "data/tokenizer/flat_map.h"
#include "data/tokenizer/hash.h"
#include "data/tokenizer/json.h"

namespace kf {
namespace {

struct Hash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return quick_hash(text); }
};
using Counts = std::unordered_map<std::string, std::int64_t, Hash, std::equal_to<>>;

/// Bytes that a thread counts at once, about.
constexpr std::size_t kPartBytes = std::size_t{4} << 20;

/// Where a part may end: behind a line break that a character follows which is no white space. There every pattern cuts.
std::size_t end_of_part(std::string_view text, std::size_t from) {
  for (std::size_t at = text.find('\n', from); at != std::string_view::npos && at + 1 < text.size(); at = text.find('\n', at + 1)) {
    const unicode::Decoded next = unicode::decode(text.data() + at + 1, text.data() + text.size());
    if (!unicode::is(next.cp, unicode::kSpace) && next.cp != '/') {
      return at + 1;
    }
  }
  return text.size();
}

std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const std::size_t size = text.size() <= kPartBytes ? text.size() : end_of_part(text, kPartBytes);
    out.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return out;
}

void count_part(std::string_view text, scan::Pattern pattern, Counts& counts) {
  const char* end = text.data() + text.size();
  const scan::Reader reader(end);
  scan::with_scanner(pattern, [&](auto scanner) {
    for (const char* p = text.data(); p < end;) {
      const char* stop = decltype(scanner)::next(p, reader);
      const std::string_view piece(p, static_cast<std::size_t>(stop - p));
      if (const auto found = counts.find(piece); found != counts.end()) {
        ++found->second;
      } else {
        counts.emplace(piece, 1);
      }
      p = stop;
    }
  });
}

Counts count_pieces(const std::vector<std::string_view>& parts, const BpeTraining& options) {
  const std::size_t wanted = options.threads > 0 ? static_cast<std::size_t>(options.threads) : std::thread::hardware_concurrency();
  const std::size_t threads = std::clamp<std::size_t>(wanted, 1, std::max<std::size_t>(1, parts.size()));
  std::vector<Counts> counts(threads);
  std::atomic<std::size_t> next = 0;
  {
    std::vector<std::jthread> workers;
    for (Counts& own : counts) {
      workers.emplace_back([&parts, &next, &own, &options] {
        for (std::size_t i = next++; i < parts.size(); i = next++) {
          count_part(parts[i], options.pattern, own);
        }
      });
    }
  }
  for (std::size_t i = 1; i < threads; ++i) {
    for (const auto& [piece, count] : counts[i]) {
      counts[0][piece] += count;
    }
  }
  return std::move(counts[0]);
}

/// Counts of texts that come one by one: gathered until threads are worth it.
class Counter {
 public:
  explicit Counter(const BpeTraining& options) : options_(options) {}

  void add(std::string_view text) {
    if (text.size() >= kBatchBytes) {
      count(parts_of(text));
      return;
    }
    borders_.push_back(batch_.size());
    batch_ += text;
    if (batch_.size() >= kBatchBytes) {
      flush();
    }
  }

  Counts take() {
    flush();
    return std::move(counts_);
  }

 private:
  static constexpr std::size_t kBatchBytes = std::size_t{64} << 20;

  void flush() {
    std::vector<std::string_view> parts;
    borders_.push_back(batch_.size());
    for (std::size_t i = 0; i + 1 < borders_.size(); ++i) {
      for (const std::string_view part : parts_of(std::string_view(batch_).substr(borders_[i], borders_[i + 1] - borders_[i]))) {
        parts.push_back(part);
      }
    }
    count(parts);
    batch_.clear();
    borders_.clear();
  }

  void count(const std::vector<std::string_view>& parts) {
    Counts more = count_pieces(parts, options_);
    if (counts_.empty()) {
      counts_ = std::move(more);
      return;
    }
    for (const auto& [piece, times] : more) {
      counts_[piece] += times;
    }
  }

  const BpeTraining& options_;
  std::string batch_;
  std::vector<std::size_t> borders_;  // where texts begin in it
  Counts counts_;
};

struct Word {
  std::vector<std::uint32_t> ids;
  std::int64_t count;
};

struct Candidate {
  std::int64_t count;
  std::uint32_t left;
  std::uint32_t right;
  bool operator<(const Candidate& other) const {
    return count != other.count ? count < other.count : std::pair(left, right) > std::pair(other.left, other.right);
  }
};

/// Merging over all words at once: how often each pair of neighbours is there, and in which words.
class Merger {
 public:
  explicit Merger(std::vector<Word> words) : words_(std::move(words)) {
    for (std::uint32_t w = 0; w < words_.size(); ++w) {
      for (std::size_t i = 0; i + 1 < words_[w].ids.size(); ++i) {
        Pair& pair = pairs_[key(words_[w].ids[i], words_[w].ids[i + 1])];
        pair.count += words_[w].count;
        if (pair.words.empty() || pair.words.back() != w) {
          pair.words.push_back(w);
        }
        touched_.push_back(key(words_[w].ids[i], words_[w].ids[i + 1]));
      }
    }
    queue_touched();
  }

  /// The next pair to merge; count 0: there is none.
  Candidate best() {
    while (!queue_.empty()) {
      const Candidate top = queue_.top();
      queue_.pop();
      const Pair& pair = pairs_[key(top.left, top.right)];
      if (pair.count == top.count) {
        return top;
      }
      if (pair.count > 0 && pair.count < top.count) {  // it shrank since it was queued
        queue_.push({pair.count, top.left, top.right});
      }
    }
    return {0, 0, 0};
  }

  void merge(const Candidate& pair, std::uint32_t id) {
    const std::vector<std::uint32_t> words = std::move(pairs_[key(pair.left, pair.right)].words);
    pairs_[key(pair.left, pair.right)] = {};
    for (const std::uint32_t w : words) {
      merge_in(w, pair, id);
    }
    queue_touched();
  }

 private:
  struct Pair {
    std::int64_t count = 0;
    std::vector<std::uint32_t> words;  // where it may be
  };
  static std::uint64_t key(std::uint32_t left, std::uint32_t right) { return std::uint64_t{left} << 32 | right; }

  void merge_in(std::uint32_t w, const Candidate& pair, std::uint32_t id) {
    std::vector<std::uint32_t>& ids = words_[w].ids;
    const std::int64_t count = words_[w].count;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < ids.size(); ++i, ++kept) {
      if (i + 1 == ids.size() || ids[i] != pair.left || ids[i + 1] != pair.right) {
        ids[kept] = ids[i];
        continue;
      }
      if (kept > 0) {
        change(ids[kept - 1], pair.left, -count, w);
        change(ids[kept - 1], id, count, w);
      }
      if (i + 2 < ids.size()) {
        change(pair.right, ids[i + 2], -count, w);
        change(id, ids[i + 2], count, w);
      }
      ids[kept] = id;
      ++i;
    }
    ids.resize(kept);
  }

  void change(std::uint32_t left, std::uint32_t right, std::int64_t count, std::uint32_t w) {
    Pair& pair = pairs_[key(left, right)];
    pair.count += count;
    if (count > 0) {
      if (pair.words.empty() || pair.words.back() != w) {
        pair.words.push_back(w);
      }
      touched_.push_back(key(left, right));
    }
  }

  void queue_touched() {
    std::sort(touched_.begin(), touched_.end());
    touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
    for (const std::uint64_t pair : touched_) {
      if (const std::int64_t count = pairs_[pair].count; count > 0) {
        queue_.push({count, static_cast<std::uint32_t>(pair >> 32), static_cast<std::uint32_t>(pair)});
      }
    }
    touched_.clear();
  }

  std::vector<Word> words_;
  FlatMap<Pair> pairs_;
  std::priority_queue<Candidate> queue_;
  std::vector<std::uint64_t> touched_;  // pairs that grew since the queue was filled
};

/// Ids of bytes in the order of their letters, as Hugging Face's trainer numbers its alphabet.
std::vector<unsigned char> bytes_by_letter() {
  std::vector<unsigned char> out(256);
  for (unsigned byte = 0; byte < 256; ++byte) {
    out[byte] = static_cast<unsigned char>(byte);
  }
  std::sort(out.begin(), out.end(), [](unsigned char a, unsigned char b) { return byte_letters::letter(a) < byte_letters::letter(b); });
  return out;
}

std::vector<Word> words_of(const Counts& counts, const std::vector<std::uint32_t>& byte_ids) {
  std::vector<const Counts::value_type*> sorted;
  sorted.reserve(counts.size());
  for (const auto& entry : counts) {
    sorted.push_back(&entry);
  }
  std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) { return a->first < b->first; });
  std::vector<Word> out;
  out.reserve(sorted.size());
  for (const auto* entry : sorted) {
    Word word{{}, entry->second};
    for (const char c : entry->first) {
      word.ids.push_back(byte_ids[static_cast<unsigned char>(c)]);
    }
    out.push_back(std::move(word));
  }
  return out;
}

}  // namespace

TrainedBpe train_bpe(const NextText& next, const std::string& what, const BpeTraining& options) {
  TrainedBpe out;
  Counter counter(options);
  for (std::string_view text; next(text);) {
    out.bytes += static_cast<std::int64_t>(text.size());
    counter.add(text);
  }
  KF_CHECK(out.bytes > 0, Code::data, "there is no text to learn from: {} holds none", what);
  const Counts counts = counter.take();
  out.different = static_cast<std::int64_t>(counts.size());
  for (const auto& entry : counts) {
    out.pieces += entry.second;
  }

  out.tokens = options.special;
  std::vector<std::uint32_t> byte_ids(256);
  for (const unsigned char byte : bytes_by_letter()) {
    byte_ids[byte] = static_cast<std::uint32_t>(out.tokens.size());
    out.tokens.emplace_back(1, static_cast<char>(byte));
  }
  KF_CHECK(options.vocab_size >= out.tokens.size(), Code::config, "--vocab-size {} is less than 256 bytes and {} special tokens",
           options.vocab_size, options.special.size());
  Merger merger(words_of(counts, byte_ids));
  std::unordered_map<std::string, std::uint32_t> known;
  while (out.tokens.size() < options.vocab_size) {
    const Candidate best = merger.best();
    KF_CHECK(best.count >= options.min_count, Code::data,
             "the text is too small for {} ids: after {} no pair comes {} times; lower --vocab-size or --min-count, or bring more text",
             options.vocab_size, out.tokens.size(), options.min_count);
    const auto id = static_cast<std::uint32_t>(out.tokens.size());
    const auto [entry, is_new] = known.emplace(out.tokens[best.left] + out.tokens[best.right], id);
    out.merges.emplace_back(best.left, best.right);
    merger.merge(best, entry->second);
    if (is_new) {
      out.tokens.push_back(entry->first);
    }
  }
  return out;
}

std::string tokenizer_json(const TrainedBpe& trained, const BpeTraining& options) {
  const std::size_t special = options.special.size();
  const auto spelled = [&](std::size_t id) {
    return json::quote(id < special ? trained.tokens[id] : byte_letters::spell(trained.tokens[id]));
  };
  std::string out = "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n  \"added_tokens\": [";
  for (std::size_t id = 0; id < special; ++id) {
    out += format("{}\n    {\"id\": {}, \"content\": {}, \"single_word\": false, \"lstrip\": false, \"rstrip\": false, ",
                  id == 0 ? "" : ",", id, spelled(id));
    out += "\"normalized\": false, \"special\": true}";
  }
  out += "\n  ],\n  \"normalizer\": null,\n  \"pre_tokenizer\": ";
  const std::string byte_level = "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, \"use_regex\": ";
  if (options.pattern == scan::Pattern::gpt2) {
    out += byte_level + "true}";
  } else {
    out += "{\"type\": \"Sequence\", \"pretokenizers\": [\n    {\"type\": \"Split\", \"pattern\": {\"Regex\": " +
           json::quote(scan::pattern_text(options.pattern)) + "}, \"behavior\": \"Isolated\", \"invert\": false},\n    " + byte_level +
           "false}]}";
  }
  out += ",\n  \"post_processor\": null,\n  \"decoder\": " + byte_level +
         "true},\n  \"model\": {\n    \"type\": \"BPE\", \"dropout\": null, " +
         "\"unk_token\": null, \"continuing_subword_prefix\": null, \"end_of_word_suffix\": null, \"fuse_unk\": false, " +
         "\"byte_fallback\": false, \"ignore_merges\": false,\n    \"vocab\": {";
  for (std::size_t id = 0; id < trained.tokens.size(); ++id) {
    out += (id == 0 ? "\n      " : ",\n      ") + spelled(id) + ": " + std::to_string(id);
  }
  out += "\n    },\n    \"merges\": [";
  for (std::size_t i = 0; i < trained.merges.size(); ++i) {
    out += (i == 0 ? "\n      [" : ",\n      [") + spelled(trained.merges[i].first) + ", " + spelled(trained.merges[i].second) + "]";
  }
  return out + "\n    ]\n  }\n}\n";
}

}  // namespace kf
