#include "data/cache/build.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "core/error.h"
#include "core/log.h"
#include "core/progress.h"
#include "core/stop.h"
#include "data/cache/plan.h"
#include "data/cache/shard_writer.h"
#include "data/cache/work_queue.h"
#include "data/file/memory_fault.h"

namespace kf::cache {
namespace {

constexpr std::size_t kBatchBytes = 512 << 10;
constexpr std::size_t kBatchDocuments = 1 << 15;  // of which many may be empty

/// Another thread has the reason.
struct Stopped {};

fs::path record_path(const fs::path& folder, std::size_t unit) { return folder / (shard_file("shard", unit) + ".json"); }

class Builder {
 public:
  Builder(const BuildJob& job, fs::path folder)
      : job_(job),
        folder_(std::move(folder)),
        units_(plan_units(*job.files, job.unit_bytes)),
        shards_(units_.size()),
        queue_([this](const TextBatch& batch) { return encode_batch(batch, job_.encode, *job_.files); }),
        progress_("tokenizing", job.files->bytes, "tokens") {}

  std::vector<Shard> run() {
    keep_finished();
    const bool here = job_.threads == 0 || job_.transform || !job_.encode.tokenizer->concurrent();
    const std::int64_t helpers = job_.encode.tokenizer->concurrent() ? job_.threads : 0;
    if (here) {
      run_here(helpers);
    } else {
      run_threads(helpers);
    }
    if (error_) {
      std::rethrow_exception(error_);
    }
    return gathered();
  }

 private:
  /// Shards that an earlier, killed build finished. Their record is written after their files are durable.
  void keep_finished() {
    std::size_t kept = 0;
    for (std::size_t unit = 0; unit < units_.size(); ++unit) {
      const fs::path path = record_path(folder_, unit);
      std::error_code missing;
      if (!fs::exists(path, missing)) {
        continue;
      }
      Shard shard = shard_from_json(read_file(path), path);
      if (shard.pieces == units_[unit] && is_there(folder_, unit, shard)) {
        progress_.skip(bytes_of(units_[unit]));
        shards_[unit] = std::move(shard);
        ++kept;
      } else {
        remove_shard(folder_, unit);
      }
    }
    if (kept > 0) {
      log::info("cache: going on with {} of {} parts that an earlier build finished", kept, units_.size());
    }
  }

  /// The calling thread reads everything (parts in Lua run there), `helpers` encode.
  void run_here(std::int64_t helpers) {
    std::vector<std::jthread> threads;
    start(threads, helpers, [this] { queue_.help(); });
    shows_here_ = true;
    own_units();
    queue_.close();
  }

  void run_threads(std::int64_t count) {
    std::vector<std::jthread> threads;
    owners_ = static_cast<std::size_t>(count);
    const std::int64_t missing = count - start(threads, count, [this] {
                                   own_units();
                                   leave();
                                   queue_.help();
                                 });
    std::unique_lock lock(mutex_);
    owners_ -= static_cast<std::size_t>(missing);
    if (owners_ == 0 && missing == count) {
      lock.unlock();
      shows_here_ = true;
      own_units();
      return;
    }
    while (!finished_.wait_for(lock, std::chrono::milliseconds(100), [&] { return owners_ == 0; })) {
      lock.unlock();
      show();
      lock.lock();
    }
    lock.unlock();
    queue_.close();
  }

  /// How many threads the system gave.
  template <class F>
  static std::int64_t start(std::vector<std::jthread>& threads, std::int64_t count, F work) {
    try {
      for (std::int64_t i = 0; i < count; ++i) {
        threads.emplace_back(work);
      }
    } catch (const std::system_error& error) {
      log::warn("data.num_workers = {}: the system gives {} threads ({})", count, threads.size(), error.what());
    }
    return static_cast<std::int64_t>(threads.size());
  }

  void leave() {
    const std::lock_guard lock(mutex_);
    --owners_;
    finished_.notify_all();
  }

  /// Takes units until there are none. The first error ends it for all threads.
  void own_units() {
    for (std::optional<std::size_t> unit = next_unit(); unit; unit = next_unit()) {
      try {
        Shard shard = build_unit(*unit);
        const std::lock_guard lock(mutex_);
        shards_[*unit] = std::move(shard);
      } catch (const Stopped&) {
        return;
      } catch (const std::exception&) {
        const std::lock_guard lock(mutex_);
        if (!error_ || *unit < error_unit_) {
          error_ = std::current_exception();
          error_unit_ = *unit;
        }
        stop_ = true;
      }
    }
  }

  std::optional<std::size_t> next_unit() {
    const std::lock_guard lock(mutex_);
    while (next_ < units_.size() && shards_[next_]) {
      ++next_;
    }
    if (stop_ || next_ == units_.size() || enough_before(next_)) {
      return std::nullopt;
    }
    return next_++;
  }

  bool limited() const { return job_.max_documents > 0 || job_.max_tokens > 0; }
  bool enough(const Counts& counts) const {
    return (job_.max_documents > 0 && counts.documents >= job_.max_documents) || (job_.max_tokens > 0 && counts.tokens >= job_.max_tokens);
  }

  /// Whether finished units before this one, without a gap, reach a limit.
  bool enough_before(std::size_t unit) const {
    Counts counts;
    for (std::size_t i = 0; limited() && i < unit && shards_[i]; ++i) {
      counts += shards_[i]->counts;
    }
    return enough(counts);
  }

  /// Documents that are not among those of a unit.
  struct LeftOut {
    std::int64_t dropped = 0;  // by transforms
    std::int64_t skipped = 0;  // broken
  };

  Shard build_unit(std::size_t unit) {
    ShardWriter writer(folder_, unit, job_.wide, job_.encode.mask);
    Skipped skipped;
    struct Ahead {
      std::shared_ptr<WorkQueue::Task> task;
      LeftOut left_out;  // when it was read
    };
    std::deque<Ahead> ahead;
    LeftOut left_out;
    const auto write_first = [&] {
      const IdBatch ids = queue_.take(*ahead.front().task);
      const LeftOut before = ahead.front().left_out;
      ahead.pop_front();
      if (!enough(writer.counts())) {  // what was read beyond a limit depends on the threads, and is left out
        writer.add(ids);
        left_out = before;
        progress_.add(0, static_cast<std::int64_t>(ids.ids.size()));
      }
    };
    UnitReader reader(*this, unit, skipped);
    for (TextBatch batch = reader.next(); !batch.items.empty(); batch = reader.next()) {
      ahead.push_back({queue_.submit(std::move(batch)), reader.left_out()});
      while (ahead.size() > (queue_.idle() == 0 ? 1 : 2 * static_cast<std::size_t>(job_.threads))) {
        write_first();
      }
      if (enough(writer.counts())) {
        break;
      }
      look_up();
    }
    while (!ahead.empty()) {
      write_first();
    }
    if (!enough(writer.counts())) {
      left_out = reader.left_out();
    }
    for (const Piece& piece : units_[unit]) {
      check_unchanged(job_.files->files[piece.file], (*job_.hashed)[piece.file]);
    }
    Shard shard = writer.finish(units_[unit], left_out.dropped, left_out.skipped, skipped.reasons());
    write_file_atomic(record_path(folder_, unit), to_json(shard));
    return shard;
  }

  /// The documents of a unit, in batches.
  class UnitReader {
   public:
    UnitReader(Builder& builder, std::size_t unit, Skipped& skipped)
        : builder_(builder), pieces_(builder.units_[unit]), skipped_(skipped) {}

    /// Empty at the end.
    TextBatch next() {
      TextBatch batch;
      while (batch.text.size() < kBatchBytes && batch.items.size() < kBatchDocuments && at_ < pieces_.size() && !full()) {
        const SourceFile& file = builder_.job_.files->files[pieces_[at_].file];
        if (!reader_) {
          reader_ = open_records(file, {pieces_[at_].begin, pieces_[at_].end}, builder_.job_.read, skipped_);
          position_ = 0;
        }
        const bool more = reader_->next(record_);
        report(more ? reader_->position() : std::min(pieces_[at_].end, file.size) - pieces_[at_].begin);
        if (more) {
          naming_file(file.path, record_.number, [&] { add(batch); });
        } else {
          reader_.reset();
          ++at_;
        }
      }
      return batch;
    }
    LeftOut left_out() const { return {dropped_, skipped_.count()}; }

   private:
    bool full() const { return builder_.job_.max_documents > 0 && documents_ >= builder_.job_.max_documents; }

    void report(std::int64_t position) {
      builder_.progress_.add(position - position_, 0);
      position_ = position;
    }

    void add(TextBatch& batch) {
      std::string_view text = record_.text;
      if (builder_.job_.transform) {
        changed_.assign(text);
        if (!builder_.job_.transform(changed_)) {
          ++dropped_;
          return;
        }
        text = changed_;
      }
      const std::size_t begin = batch.text.size();
      batch.text.append(text);
      batch.items.push_back(
          {begin, batch.text.size(), record_.masked, record_.counted, record_.written, pieces_[at_].file, record_.number});
      ++documents_;
    }

    Builder& builder_;
    const std::vector<Piece>& pieces_;
    Skipped& skipped_;
    std::size_t at_ = 0;
    std::unique_ptr<RecordReader> reader_;
    Record record_;
    std::string changed_;
    std::int64_t position_ = 0;
    std::int64_t documents_ = 0;
    std::int64_t dropped_ = 0;
  };

  /// Between two batches: whether to go on, and progress where the calling thread reads.
  void look_up() {
    if (shows_here_) {
      show();
    }
    const std::lock_guard lock(mutex_);
    if (stop_) {
      throw Stopped{};
    }
  }

  void show() {
    progress_.show();
    if (StopSignals::requested()) {
      const std::lock_guard lock(mutex_);
      stop_ = true;
      error_ = error_ ? error_
                      : std::make_exception_ptr(Error(
                            Code::other, "stopped while text was tokenized; finished parts are kept, and the same call goes on with them"));
    }
  }

  std::int64_t bytes_of(const std::vector<Piece>& pieces) const {
    std::int64_t bytes = 0;
    for (const Piece& piece : pieces) {
      bytes += std::min(piece.end, job_.files->files[piece.file].size) - piece.begin;
    }
    return bytes;
  }

  /// The shards up to the limit; files of later ones go.
  std::vector<Shard> gathered() {
    std::vector<Shard> out;
    Counts counts;
    std::size_t unit = 0;
    for (; unit < units_.size() && !(limited() && enough(counts)); ++unit) {
      counts += shards_[unit]->counts;
      out.push_back(std::move(*shards_[unit]));
    }
    for (; unit < units_.size(); ++unit) {
      remove_shard(folder_, unit);
    }
    return out;
  }

  const BuildJob& job_;
  fs::path folder_;
  std::vector<std::vector<Piece>> units_;
  std::vector<std::optional<Shard>> shards_;  // of each unit; guarded by mutex_ while threads run
  WorkQueue queue_;
  Progress progress_;
  bool shows_here_ = false;

  std::mutex mutex_;
  std::condition_variable finished_;
  std::size_t next_ = 0;
  std::size_t owners_ = 0;
  bool stop_ = false;
  std::exception_ptr error_;
  std::size_t error_unit_ = 0;
};

}  // namespace

std::vector<Shard> build_shards(const BuildJob& job, const fs::path& folder) { return Builder(job, folder).run(); }

}  // namespace kf::cache
