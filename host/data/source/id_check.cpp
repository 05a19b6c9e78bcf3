#include "data/source/id_check.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>
#include <thread>

#include "core/error.h"
#include "core/log.h"
#include "core/progress.h"
#include "core/text.h"
#include "data/cache/sources.h"

namespace kf {
namespace {

constexpr std::int64_t kBlockBytes = std::int64_t{4} << 20;
constexpr const char* kMark = "kf-host ids 1";

bool can_be_wrong(const TokenFile& file) {
  const auto vocabulary = static_cast<std::uint64_t>(file.vocab_size());
  switch (file.type()) {
    case TokenType::uint16: return vocabulary < std::uint64_t{1} << 16;
    case TokenType::uint32: return vocabulary < std::uint64_t{1} << 32;
    default: return true;
  }
}

std::int64_t width_of(const TokenFile& file) { return static_cast<std::int64_t>(token_width(file.type())); }

/// What was found in large files, one line each: largest id, how the ids lie, size, times, inode, path.
class Memo {
 public:
  explicit Memo(const IdCheckOptions& options) : options_(options) {
    std::error_code error;
    if (!options.memo_dir.empty() && fs::is_regular_file(path(), error)) {
      read();
    }
  }

  std::optional<std::uint64_t> largest(const TokenFile& file) const {
    const auto at = known_.find(key(file));
    return at == known_.end() ? std::nullopt : std::optional(at->second);
  }
  void add(const TokenFile& file, std::uint64_t largest) {
    if (!options_.memo_dir.empty() && file.tokens() * width_of(file) >= options_.memo_bytes && is_settled(file)) {
      known_[key(file)] = largest;
      changed_ = true;
    }
  }
  /// A folder that cannot be written costs the next start its time, no more.
  void keep() const {
    if (!changed_) {
      return;
    }
    std::string text = std::string(kMark) + "\n";
    for (const auto& [key, largest] : known_) {
      text += to_text(largest) + " " + key + "\n";
    }
    try {
      fs::create_directories(options_.memo_dir);
      write_file_atomic(path(), text);
    } catch (const std::exception& error) {
      log::info("what is known of the ids is not kept for the next start: {}", error.what());
    }
  }

 private:
  fs::path path() const { return fs::path(options_.memo_dir) / "checked-ids"; }

  bool is_settled(const TokenFile& file) const {
    const cache::Stamp stamp = cache::stamp_of(file.path());
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const std::int64_t age = std::chrono::nanoseconds(now).count() - std::max(stamp.modified, stamp.changed);
    return age >= options_.settled_seconds * 1'000'000'000;
  }

  static std::string key(const TokenFile& file) {
    const cache::Stamp s = cache::stamp_of(file.path());
    return format("{} {} {} {} {} {} {} {}", token_type_name(file.type()), file.layout().offset, s.size, s.modified, s.changed, s.inode,
                  s.device, fs::absolute(file.path()).lexically_normal().string());
  }

  void read() {
    std::istringstream in(read_file(path()));
    std::string line;
    if (!std::getline(in, line) || line != kMark) {
      return;
    }
    while (std::getline(in, line)) {
      std::istringstream words(line);
      std::uint64_t largest = 0;
      std::string key;
      if (words >> largest && words.ignore(1) && std::getline(words, key)) {
        known_[key] = largest;
      }
    }
  }

  const IdCheckOptions& options_;
  std::map<std::string, std::uint64_t> known_;
  bool changed_ = false;
};

struct Block {
  const TokenFile* file = nullptr;
  std::int64_t first = 0;
  std::int64_t count = 0;
};

class Scan {
 public:
  Scan(const std::vector<const TokenFile*>& files, const IdCheckOptions& options) : options_(options), memo_(options) {
    for (const TokenFile* const file : files) {
      const std::optional<std::uint64_t> known = can_be_wrong(*file) ? memo_.largest(*file) : std::nullopt;
      const bool fine = known && *known < static_cast<std::uint64_t>(file->vocab_size());
      if (can_be_wrong(*file) && file->tokens() > 0 && !fine) {
        files_.push_back(file);
        bytes_ += file->tokens() * width_of(*file);
      }
    }
  }

  void run() {
    if (files_.empty()) {
      return;
    }
    stride_ = options_.all ? 1 : std::max<std::int64_t>(1, (bytes_ + options_.sample_bytes - 1) / options_.sample_bytes);
    make_blocks();
    read_blocks();
    if (bad_ < blocks_.size()) {
      const Block& block = blocks_[bad_];
      std::vector<std::int64_t> ids(static_cast<std::size_t>(block.count));
      block.file->read(block.first, ids);  // throws, naming the first wrong one
    }
    if (stride_ > 1) {
      log::info(
          "data.check_ids = \"auto\": of {} of ids an even sample of one in {} was compared with the vocabulary; the rest is when it is "
          "read",
          human_bytes(static_cast<double>(bytes_)), stride_);
      return;
    }
    std::size_t at = 0;
    for (const TokenFile* const file : files_) {
      std::uint64_t most = 0;
      for (; at < blocks_.size() && blocks_[at].file == file; ++at) {
        most = std::max(most, largest_[at]);
      }
      memo_.add(*file, most);
    }
    memo_.keep();
  }

 private:
  /// Every stride-th block of all files as they follow each other, and always the first and last of a file.
  void make_blocks() {
    std::int64_t number = 0;
    for (const TokenFile* const file : files_) {
      const std::int64_t count = kBlockBytes / width_of(*file);
      for (std::int64_t first = 0; first < file->tokens(); first += count, ++number) {
        const bool edge = first == 0 || first + count >= file->tokens();
        if (edge || number % stride_ == 0) {
          blocks_.push_back({file, first, std::min(count, file->tokens() - first)});
        }
      }
    }
    largest_.assign(blocks_.size(), 0);
    bad_ = blocks_.size();
  }

  void read_blocks() {
    std::int64_t total = 0;
    for (const Block& block : blocks_) {
      total += block.count * width_of(*block.file);
    }
    Progress progress("checking ids", total);
    const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
    std::vector<std::jthread> helpers;
    for (std::size_t i = 1; i < std::min({cores, std::size_t{8}, blocks_.size() / 2}); ++i) {
      helpers.emplace_back([&] { work(progress, false); });
    }
    work(progress, true);
  }

  void work(Progress& progress, bool shows) {
    for (std::size_t i = next_++; i < blocks_.size() && i < bad_; i = next_++) {
      const Block& block = blocks_[i];
      largest_[i] = block.file->largest(block.first, block.count);
      if (largest_[i] >= static_cast<std::uint64_t>(block.file->vocab_size())) {
        std::size_t worst = bad_;
        while (i < worst && !bad_.compare_exchange_weak(worst, i)) {
        }
      }
      progress.add(block.count * width_of(*block.file));
      if (shows) {
        progress.show();
      }
    }
  }

  const IdCheckOptions& options_;
  Memo memo_;
  std::vector<const TokenFile*> files_;
  std::int64_t bytes_ = 0;
  std::int64_t stride_ = 1;
  std::vector<Block> blocks_;
  std::vector<std::uint64_t> largest_;
  std::atomic<std::size_t> next_{0};
  std::atomic<std::size_t> bad_{0};  // the first block with a wrong id, blocks_.size() for none
};

}  // namespace

void check_ids(const std::vector<const TokenFile*>& files, const IdCheckOptions& options) { Scan(files, options).run(); }

}  // namespace kf
