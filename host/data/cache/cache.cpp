#include "data/cache/cache.h"

#include <csignal>
#include <cstdlib>
#include <optional>

#include "core/error.h"
#include "core/group_sync.h"
#include "core/log.h"
#include "data/cache/lock.h"
#include "data/cache/plan.h"

namespace kf::cache {
namespace {

std::string describe(const Manifest& manifest) {
  const std::size_t files = manifest.parts.sources.size();
  return format("{} {}, {} of text, {} tokens ({})", grouped(static_cast<std::int64_t>(files)), files == 1 ? "file" : "files",
                human_bytes(static_cast<double>(manifest.counts.text_bytes)), grouped(manifest.counts.tokens),
                manifest.parts.tokenizer_description);
}

class Opening {
 public:
  explicit Opening(const CacheRequest& request) : request_(request) {
    memo_path_ = request_.dir / "sources" / (memo_id(*request_.files, request_.source) + ".txt");
    memo_ = read_memo(memo_path_);
    hashed_ = hash_files(*request_.files, memo_, request_.threads);
    for (std::size_t i = 0; i < hashed_.size(); ++i) {
      const SourceFile& file = request_.files->files[i];
      parts_.sources.push_back({file.name, file.size, to_text(file.kind), hashed_[i].hash});
    }
    parts_.tokenizer = request_.tokenizer_hash;
    parts_.tokenizer_description = request_.tokenizer_name;
    parts_.options = request_.options;
    key_ = key_of(parts_);
    folder_ = request_.dir / key_;
  }

  OpenedCache run() {
    if (auto documents = existing(false)) {
      remember();
      return {documents, false};
    }
    if (!request_.build) {
      throw NotTokenized(Code::data, format("{} is not in the cache {} yet: `kf-host data build` with the same settings makes it",
                                            request_.source, request_.dir));
    }
    prepare_folder();
    const FileLock lock(lock_path(), format("cache: another process tokenizes {}; waiting for it", request_.source));
    auto documents = existing(true);  // the other one may have finished it
    const bool built = documents == nullptr;
    if (built) {
      build();
      documents = existing(false);
      KF_CHECK(documents != nullptr, Code::data, "{} disappeared while it was built", folder_);
    }
    std::error_code ignored;
    fs::remove(lock_path(), ignored);  // who waits for it finds the cache whole
    remember();
    return {documents, built};
  }

 private:
  fs::path lock_path() const { return request_.dir / (key_ + ".lock"); }
  fs::path part_path() const { return request_.dir / (key_ + ".part"); }

  /// The finished cache, or null. One that is damaged is removed by who holds the lock.
  std::shared_ptr<const CachedDocuments> existing(bool locked) {
    std::error_code missing;
    if (!fs::exists(folder_ / "cache.json", missing)) {
      return nullptr;
    }
    try {
      Manifest manifest = manifest_from_json(read_file(folder_ / "cache.json"), folder_ / "cache.json");
      KF_CHECK(manifest.key == key_, Code::data, "{} says that it is {}", folder_, manifest.key);
      std::string description = describe(manifest);
      return std::make_shared<CachedDocuments>(folder_, std::move(manifest), std::move(description));
    } catch (const Error& error) {
      KF_CHECK(request_.build, Code::data, "{}", error.what());
      if (locked) {
        log::warn("cache: {}; it is made again", error.what());
        fs::remove_all(folder_);
      }
      return nullptr;
    }
  }

  void prepare_folder() {
    std::error_code error;
    const bool fresh = fs::create_directories(request_.dir, error);
    KF_CHECK(!error, Code::data, "cannot make the cache folder {}: {}; set data.cache_dir to a folder that can be written to", request_.dir,
             error.message());
    if (fresh) {
      write_file_atomic(request_.dir / ".gitignore", "*\n");
    }
  }

  void say_why() {
    if (memo_.last_key.empty() || memo_.last_key == key_) {
      return;
    }
    const fs::path last = request_.dir / memo_.last_key / "cache.json";
    std::error_code missing;
    if (!fs::exists(last, missing)) {
      return;
    }
    std::vector<std::string> different;
    try {
      different = changes(manifest_from_json(read_file(last), last).parts, parts_);
    } catch (const Error& error) {
      log::info("cache: {} is tokenized again; what changed since {} cannot be said: {}", request_.source, last, error.what());
    }
    if (different.empty()) {
      return;
    }
    constexpr std::size_t kShown = 5;
    std::vector<std::string> shown(different.begin(), different.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, different.size())));
    if (different.size() > kShown) {
      shown.push_back(format("and {} more", different.size() - kShown));
    }
    log::info("cache: {} is tokenized again; what changed: {}", request_.source, join(shown, ", "));
  }

  /// Parts of a build that was killed before the source changed are of no use to anyone.
  void remove_stale_parts() {
    if (memo_.last_key.empty() || memo_.last_key == key_) {
      return;
    }
    const fs::path lock = request_.dir / (memo_.last_key + ".lock");
    if (FileLock::is_free(lock)) {
      std::error_code ignored;
      fs::remove_all(request_.dir / (memo_.last_key + ".part"), ignored);
    }
  }

  /// What a build that was killed had not yet renamed: under names that nothing else would write over.
  void remove_half_written() {
    std::vector<fs::path> found;
    for (const fs::directory_entry& entry : fs::directory_iterator(part_path())) {
      if (entry.path().extension().string().starts_with(".tmp")) {
        found.push_back(entry.path());
      }
    }
    for (const fs::path& path : found) {
      fs::remove(path);
    }
  }

  void build() {
    std::signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes is an error that says so, not the end of the process
    say_why();
    remove_stale_parts();
    BuildJob job;
    job.files = request_.files;
    job.hashed = &hashed_;
    job.read = request_.read;
    job.encode = request_.encode;
    job.transform = request_.transform;
    job.wide = request_.encode.tokenizer->vocab_size() > 65536 || request_.encode.bos.value_or(0) > 65535 ||
               request_.encode.eos.value_or(0) > 65535;
    job.threads = request_.threads;
    job.unit_bytes = request_.unit_bytes > 0 ? request_.unit_bytes : unit_bytes(request_.files->bytes);
    job.max_documents = request_.max_documents;
    job.max_tokens = request_.max_tokens;
    fs::remove_all(folder_);  // without a cache.json it is nobody's
    fs::create_directories(part_path());
    remove_half_written();
    remember();  // so that a build which is killed now is known by its key
    log::info("cache: tokenizing {} ({} {}, {}) with {} into {}", request_.source, parts_.sources.size(),
              parts_.sources.size() == 1 ? "file" : "files", human_bytes(static_cast<double>(request_.files->bytes)), threads_text(),
              folder_);
    const auto begin = std::chrono::steady_clock::now();
    std::vector<Shard> shards;
    try {
      shards = build_shards(job, part_path());
      for (std::size_t i = 0; i < hashed_.size(); ++i) {
        check_unchanged(request_.files->files[i], hashed_[i]);
      }
    } catch (const Error&) {
      forget_if_changed();
      throw;
    }
    finish(std::move(shards), std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }

  std::string threads_text() const {
    return request_.threads == 0 ? "one thread" : format("{} {}", request_.threads, request_.threads == 1 ? "thread" : "threads");
  }

  /// Parts under a key that the source no longer has.
  void forget_if_changed() {
    for (std::size_t i = 0; i < hashed_.size(); ++i) {
      try {
        check_unchanged(request_.files->files[i], hashed_[i]);
      } catch (const Error&) {
        std::error_code ignored;
        fs::remove_all(part_path(), ignored);
        return;
      }
    }
  }

  void finish(std::vector<Shard> shards, double seconds) {
    Manifest manifest;
    manifest.key = key_;
    manifest.parts = parts_;
    manifest.per_source.resize(parts_.sources.size());
    for (const Shard& shard : shards) {
      manifest.counts += shard.counts;
      manifest.notes += shard.notes;
      for (const auto& [file, counts] : shard.files) {
        KF_CHECK(file < manifest.per_source.size(), Code::data, "a shard of {} is of file {}, and there are {}", part_path(), file,
                 manifest.per_source.size());
        manifest.per_source[file] += counts;
      }
    }
    if (manifest.counts.documents == 0) {
      fs::remove_all(part_path());
      fail(Code::data, "{}: {}", request_.source, nothing(manifest.notes));
    }
    manifest.shards = std::move(shards);
    write_file_atomic(part_path() / "cache.json", to_json(manifest));
    for (std::size_t i = 0; i < manifest.shards.size(); ++i) {
      fs::remove(part_path() / (shard_file("shard", i) + ".json"));
    }
    sync_path(part_path());
    GroupSync::flush();  // a folder under this name is whole
    fs::rename(part_path(), folder_);
    sync_path(request_.dir);
    say_result(manifest, seconds);
  }

  std::string nothing(const Notes& notes) const {
    if (notes.dropped > 0) {
      return format("transforms leave no document: all {} are dropped, as a function that returns nothing drops them",
                    grouped(notes.dropped));
    }
    if (notes.skipped > 0) {
      return format("no document is left: {} broken records were skipped (data.on_error = \"skip\")", grouped(notes.skipped));
    }
    return parts_.sources.size() == 1 ? format("{} holds no document", request_.files->files.front().path)
                                      : format("none of the {} files holds a document", parts_.sources.size());
  }

  void say_result(const Manifest& manifest, double seconds) const {
    log::info("cache: {} documents, {} tokens from {} of text in {} ({}/s)", grouped(manifest.counts.documents),
              grouped(manifest.counts.tokens), human_bytes(static_cast<double>(manifest.counts.text_bytes)), fixed(seconds, 1) + "s",
              human_bytes(static_cast<double>(manifest.counts.text_bytes) / std::max(seconds, 1e-3)));
    const Notes& notes = manifest.notes;
    if (notes.skipped > 0) {
      log::warn("cache: {} broken records were left out (data.on_error = \"skip\"), such as: {}", grouped(notes.skipped),
                notes.skipped_reasons.empty() ? "" : notes.skipped_reasons.front());
    }
    if (notes.dropped > 0) {
      log::info("cache: transforms dropped {} documents", grouped(notes.dropped));
    }
    if (notes.special_names > 0) {
      log::info("cache: names of special tokens stand in the text {} times; they were read as {} (data.special_tokens)",
                grouped(notes.special_names), request_.encode.options.special == SpecialText::special ? "special tokens" : "ordinary text");
    }
  }

  void remember() {
    if (is_current(memo_, key_, *request_.files, hashed_)) {
      return;
    }
    try {
      write_memo(memo_path_, key_, *request_.files, hashed_);
    } catch (const std::exception& error) {
      log::info("cache: the files' hashes are not remembered, so the next run reads them again ({})", error.what());
    }
  }

  const CacheRequest& request_;
  fs::path memo_path_;
  SourceMemo memo_;
  std::vector<HashedFile> hashed_;
  KeyInputs parts_;
  std::string key_;
  fs::path folder_;
};

}  // namespace

OpenedCache open_cache(const CacheRequest& request) { return Opening(request).run(); }

fs::path cache_folder(const std::string& setting) {
  if (!setting.empty()) {
    return setting;
  }
  const char* const variable = std::getenv("KF_CACHE_DIR");
  return variable != nullptr && *variable != '\0' ? fs::path(variable) : fs::path(".kf-cache");
}

}  // namespace kf::cache
