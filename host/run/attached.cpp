#include "run/attached.h"

#include <sys/stat.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "attach/frame.h"
#include "checkpoint/values.h"
#include "core/error.h"
#include "core/log.h"
#include "core/plain_file.h"
#include "run/run_record.h"

namespace kf {
namespace {

constexpr std::chrono::seconds kMostReading(60);        // of a script whose files have changed
constexpr std::chrono::milliseconds kBetweenLooks(50);  // at the mark of a client that has gone away
constexpr const char* kTooLong = "the script takes longer than 60 s to be read again";

/// A chunk in a line of the log.
std::string shown(const RunMessage& said) {
  if (said.kind == RunMessage::Kind::reload) {
    return "hooks are read again";
  }
  constexpr std::size_t kMost = 100;
  const std::string line = said.text.substr(0, said.text.find('\n'));
  const std::string begin = line.substr(0, kMost);
  return is_utf8(begin) ? begin + (begin.size() < said.text.size() ? " ..." : "") : "a chunk that is no text";
}

void tell_log(const RunMessage& said, const Outcome& outcome, std::int64_t step) {
  const bool watched = said.kind == RunMessage::Kind::reload && said.text.empty();
  const char* const who = said.asker != 0 ? "attach" : watched ? "run.reload" : "repeated";
  if (outcome.error.empty()) {
    log::info("step {}, {}: {}", step, who, shown(said));
    return;
  }
  const std::string what = said.kind == RunMessage::Kind::reload ? "the hooks stay as they were" : shown(said);
  if (said.asker != 0) {  // the prompt has the whole
    log::info("step {}, {}: {}: {}", step, who, what, outcome.error.substr(0, outcome.error.find('\n')));
  } else {
    log::warn("step {}, {}: {}: {}", step, who, what, outcome.error);
  }
}

std::optional<FileStamp> stamp_of(const fs::path& file) {
  struct stat there {};
  if (::stat(file.c_str(), &there) != 0) {
    return std::nullopt;
  }
  return FileStamp{there.st_ino, static_cast<std::uint64_t>(there.st_size), there.st_mtim.tv_sec, there.st_mtim.tv_nsec};
}

/// As far as the file is still what the run has read.
std::optional<FileStamp> stamp_of(const CodeFile& file) {
  const std::optional<FileStamp> stamp = stamp_of(file.path);  // before it is read
  try {
    return read_file(file.path) == file.text ? stamp : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::int64_t kept_in(const CheckpointState& state) {
  const auto* const count = std::get_if<std::int64_t>(&value_at(state.values, kPrompt).value);
  return count != nullptr ? *count : 0;
}

}  // namespace

Attached::Attached(const RunContext& run, const CheckpointState& state, bool own)
    : run_(run), prompt_(run.request.scope.script()), reload_(run), kept_(own ? kept_in(state) : 0) {
  if (!run.world.leads()) {
    return;
  }
  if (const std::string& file = run.config.run.steering; !file.empty()) {
    repeated_ = read_steering(file);
    next_ = std::min(static_cast<std::size_t>(kept_), repeated_.size());  // each of them was kept
    while (!own && next_ < repeated_.size() && repeated_[next_].step <= state.run.step) {
      ++next_;  // it was said to the run whose checkpoint this one begins with
    }
  }
  for (const fs::path& mark : glob(run.plan.dir, "attach-*.gone")) {
    std::error_code none;
    fs::remove(mark, none);  // of a process that was killed
  }
  record_.emplace(run.plan.dir / "steering.jsonl", own ? std::optional(kept_) : std::nullopt);
  for (const CodeFile& file : run.code) {
    stamps_[file.path] = stamp_of(file);
  }
  if (run.config.run.attach) {
    listen();
  }
}

Attached::~Attached() = default;

/// For the other ranks, to whom nobody is attached: a file that says that a client has gone away.
fs::path Attached::gone_mark(std::int64_t asker) const { return run_.plan.dir / format("attach-{}.gone", asker); }

/// Whether nobody waits any more for what a client has asked for, on any rank.
std::function<bool()> Attached::given_up(std::int64_t asker) const {
  if (asker == 0) {
    return {};
  }
  if (run_.world.leads()) {
    return server_ ? [this, asker] { return !server_->has(asker); } : std::function<bool()>();
  }
  return [mark = gone_mark(asker), looked = std::chrono::steady_clock::time_point()]() mutable {
    const auto now = std::chrono::steady_clock::now();
    if (now - looked < kBetweenLooks) {
      return false;
    }
    looked = now;
    return path_exists(mark);
  };
}

void Attached::listen() {
  std::function<void(std::int64_t)> gone;
  if (run_.world.size() > 1) {
    gone = [this](std::int64_t asker) {
      try {
        write_file_atomic(gone_mark(asker), "");
      } catch (const std::exception& e) {
        log::warn("the other ranks do not learn that a prompt has gone away: {}", e.what());
      }
    };
  }
  try {
    server_.emplace(run_.plan.dir, std::move(gone));
    server_->set_last_words("the run has ended with an error; its log.txt says which");
  } catch (const Error& e) {
    log::warn("kf-host attach will not find this run: {}", e.what());
  }
}

std::vector<RunMessage> Attached::take(std::int64_t step) {
  std::vector<RunMessage> out;
  for (; next_ < repeated_.size() && repeated_[next_].step == step; ++next_) {
    out.push_back(repeated_[next_].said);
  }
  if (run_.world.leads() && run_.config.run.reload == "on_change" && code_changed()) {
    out.push_back({RunMessage::Kind::reload});
  }
  if (server_) {
    for (attach::Said& one : server_->take()) {
      const bool reload = one.kind == attach::Frame::Kind::reload;
      out.push_back({reload ? RunMessage::Kind::reload : RunMessage::Kind::chunk, reload ? "" : std::move(one.text), one.client});
    }
  }
  return out;
}

/// Looks once a second.
bool Attached::code_changed() {
  const auto now = std::chrono::steady_clock::now();
  if (now - looked_ < std::chrono::seconds(1)) {
    return false;
  }
  looked_ = now;
  bool changed = false;
  std::map<fs::path, std::optional<FileStamp>> stamps;
  for (const fs::path& file : reload_.files()) {
    const auto before = stamps_.find(file);
    stamps[file] = stamp_of(file);
    changed = changed || (before != stamps_.end() && before->second != stamps[file]);
  }
  stamps_ = std::move(stamps);
  return changed;
}

void Attached::over(const RunResult& result) {
  if (server_) {
    server_->set_last_words(format("the run is over: {} at step {}", result.status, result.step));
  }
}

Outcome Attached::run(const RunMessage& chunk, HookContext& context) { return prompt_.run(chunk.text, context, given_up(chunk.asker)); }

Outcome Attached::reload(const RunMessage& wish, Hooks& hooks, HookContext& context) {
  if (wish.asker == 0) {  // nobody waits who could give it up
    const auto begun = std::chrono::steady_clock::now();
    return reload_.reload(wish.text, hooks, context,
                          {[begun] { return std::chrono::steady_clock::now() - begun > kMostReading; }, kTooLong});
  }
  return reload_.reload(wish.text, hooks, context, {given_up(wish.asker), "who asked has gone away"});
}

void Attached::keep(const RunMessage& said, std::int64_t step) {
  ++kept_;
  if (!record_) {
    return;
  }
  try {
    const bool reload = said.kind == RunMessage::Kind::reload;
    record_->add({step, reload ? RunMessage{said.kind, reload_.code(), 0} : said});
    if (reload) {
      put_reloaded(run_.plan.dir, step, reload_.taken());
    }
  } catch (const std::exception& e) {
    log::warn("what was said to the run behind step {} is not recorded, so it cannot be repeated: {}", step, e.what());
  }
}

void Attached::answer(const RunMessage& said, const Outcome& outcome, std::int64_t step) {
  if (!run_.world.leads()) {
    return;
  }
  if (said.asker != 0 && run_.world.size() > 1) {
    std::error_code none;
    fs::remove(gone_mark(said.asker), none);
  }
  if (!said.text.starts_with(attach::kNamesOf)) {
    tell_log(said, outcome, step);
  }
  if (server_ && said.asker != 0) {
    server_->answer(said.asker, {outcome.output, outcome.error, static_cast<int>(outcome.code)});
  }
}

}  // namespace kf
