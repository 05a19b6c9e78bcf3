#include "data/cache/encode.h"

#include <algorithm>

#include "core/digest.h"
#include "core/error.h"
#include "data/file/memory_fault.h"

namespace kf::cache {
namespace {

constexpr std::size_t kLong = std::size_t{1} << 24;  // bytes of a text whose ids are worth some care

class BatchEncoder {
 public:
  BatchEncoder(const EncodeRules& rules, IdBatch& out) : rules_(rules), out_(out) {}

  void add(std::string_view text, const TextBatch::Item& item) {
    const std::size_t first = out_.ids.size();
    if (text.size() >= kLong) {
      out_.ids.reserve(first + text.size() + 2);  // growing would hold them twice; what is not written takes no memory
    }
    if (rules_.bos) {
      put(*rules_.bos, !item.masked);
    }
    written_ = item.written;
    const bool counts = item.masked ? masked_text(text, item.counted) : piece(text, 0, text.size(), true);
    one_beginning(first);
    if (rules_.eos && (out_.ids.size() == first || !ends_itself(first))) {
      put(*rules_.eos, counts);
    }
    check_ids(first);
    out_.lengths.push_back(static_cast<std::int64_t>(out_.ids.size() - first));
    out_.hashes.push_back(hash64(text));
    out_.files.push_back(item.file);
    out_.text_bytes.push_back(static_cast<std::int64_t>(text.size()));
    out_.empty += text.empty() ? 1 : 0;
  }

 private:
  void put(std::int64_t id, bool counts) {
    out_.ids.push_back(static_cast<std::uint32_t>(id));
    fill_mask(counts);
  }
  void fill_mask(bool counts) {
    if (rules_.mask) {
      out_.mask.resize(out_.ids.size(), counts ? 1 : 0);
    }
  }

  /// Bytes [begin, end) of a text. Whether its last id counts.
  bool piece(std::string_view text, std::size_t begin, std::size_t end, bool counts) {
    if (begin < end) {
      EncodeOptions options = rules_.options;
      within(begin, end);
      options.written = within_;
      out_.special_names += static_cast<std::int64_t>(rules_.tokenizer->append(text.substr(begin, end - begin), out_.ids, options));
      fill_mask(counts);
    }
    return counts;
  }

  /// What a format wrote of a piece, from the piece's start.
  void within(std::size_t begin, std::size_t end) {
    within_.clear();
    for (const ByteRange& range : written_) {
      if (range.begin < end && range.end > begin) {
        within_.push_back({std::max(range.begin, begin) - begin, std::min(range.end, end) - begin});
      }
    }
  }

  bool masked_text(std::string_view text, const std::vector<ByteRange>& counted) {
    std::size_t done = 0;
    bool last = false;
    for (const ByteRange& range : counted) {
      KF_CHECK(range.begin >= done && range.begin <= range.end && range.end <= text.size(), Code::data,
               "bytes {} to {} of a text of {} are to count", range.begin, range.end, text.size());
      piece(text, done, range.begin, false);
      piece(text, range.begin, range.end, true);
      last = range.end > range.begin || last;
      done = range.end;
    }
    if (done < text.size() && !is_blank(text.substr(done))) {
      last = false;
    }
    piece(text, done, text.size(), false);
    return last;
  }

  static bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n") == std::string_view::npos; }

  bool ends_itself(std::size_t first) const {
    const std::size_t own = first + (rules_.bos ? 1 : 0);  // a beginning that is the same id as the end does not end an empty text
    return out_.ids.size() > own && out_.ids.back() == static_cast<std::uint32_t>(*rules_.eos);
  }

  /// A text that begins with the special token itself has it twice now.
  void one_beginning(std::size_t first) {
    if (rules_.bos && out_.ids.size() > first + 1 && out_.ids[first + 1] == out_.ids[first]) {
      out_.ids.erase(out_.ids.begin() + static_cast<std::ptrdiff_t>(first) + 1);
      if (rules_.mask) {
        out_.mask.erase(out_.mask.begin() + static_cast<std::ptrdiff_t>(first) + 1);
      }
    }
  }

  void check_ids(std::size_t first) {
    for (std::size_t i = first; i < out_.ids.size(); ++i) {
      const std::int64_t id = out_.ids[i];
      KF_CHECK(id < rules_.vocab_size, Code::data,
               "the tokenizer gives the id {} at place {} of the document, and model.vocab_size is {}; set model.vocab_size to {} or more",
               id, i - first, rules_.vocab_size, id + 1);
      out_.max_id = std::max(out_.max_id, id);
    }
  }

  const EncodeRules& rules_;
  IdBatch& out_;
  std::span<const ByteRange> written_;  // of the text
  std::vector<ByteRange> within_;       // of the piece
};

}  // namespace

IdBatch encode_batch(const TextBatch& batch, const EncodeRules& rules, const SourceFiles& files) {
  IdBatch out;
  BatchEncoder encoder(rules, out);
  for (const TextBatch::Item& item : batch.items) {
    try {
      naming_file(files.files[item.file].path, item.number,
                  [&] { encoder.add(std::string_view(batch.text).substr(item.begin, item.end - item.begin), item); });
    } catch (Error& error) {
      throw error.context(format("in {}, record {}", files.files[item.file].path, item.number));
    }
  }
  return out;
}

}  // namespace kf::cache
