#pragma once
// Lines of a run's file that the disk does not take for a while (it is full, its mount is gone).

#include <algorithm>
#include <cstdint>
#include <deque>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/fs.h"
#include "core/held_file.h"
#include "metrics/outage.h"

namespace kf {

/// They wait in memory and are written in order as soon as the file can be. `Line` is what waits: a text, or what it is made of.
template <class Line>
class LateLines {
 public:
  /// `words`: what messages call them, "rows".
  LateLines(fs::path path, const char* words) : path_(std::move(path)), words_(words) {}

  const fs::path& path() const { return path_; }
  std::deque<Line>& waiting() { return waiting_; }
  bool is_on() const { return outage_.is_on(); }
  /// Why the file cannot be written; "" where it can.
  const std::string& fault() const { return outage_.reason(); }

  /// Those that wait and are behind `step`, all at 0, are not written any more: the same steps come again.
  template <class StepOf>
  void leave_out(std::int64_t step, StepOf&& step_of) {
    std::erase_if(waiting_, [&](const Line& line) { return step == 0 || step_of(line) > step; });
  }
  /// Those of the file that are behind this step are removed when it can be written.
  void cut(std::int64_t step) { cut_ = std::min(step, cut_.value_or(step)); }
  /// Where that is still to come.
  std::optional<std::int64_t> cut_step() const { return cut_; }

  /// Writes what waits, as far as the disk takes it. `keep(step)` removes the lines behind a step, and opens the file where it is not open;
  /// `append(line)` writes one.
  template <class Keep, class Append>
  void settle(std::optional<HeldFile>& file, Keep&& keep, Append&& append) {
    const bool was_on = outage_.is_on();
    const std::size_t late = waiting_.size();
    try {
      if (file && (was_on || cut_)) {
        mend(*file);
      }
      if (cut_) {
        keep(*cut_);  // lines are read from the file
        cut_.reset();
      }
      for (; !waiting_.empty(); waiting_.pop_front()) {
        append(waiting_.front());
      }
      if (was_on) {
        file->sync();
      }
      outage_.over(format("{} is written again; {} {} that waited are in it", path_, late, words_));
    } catch (const std::exception& e) {
      failed(e, meanwhile());
    }
  }

  /// A file that others deleted or replaced is written again, with a warning.
  void before_save(std::optional<HeldFile>& file) {
    try {
      if (file) {
        mend(*file);
      }
    } catch (const std::exception& e) {
      failed(e, meanwhile());
    }
  }
  /// Makes what is written as durable as the disk makes it.
  void sync(std::optional<HeldFile>& file) {
    try {
      if (file) {
        file->sync();
      }
    } catch (const std::exception& e) {
      failed(e, "it is tried again with the next row");
    }
  }

  /// Throws Code::checkpoint where more wait than are kept, which `fits` says.
  void check_room(bool fits, const std::string& how_many) const {
    KF_CHECK(fits, Code::checkpoint, "{}; {} wait for that, more than are kept in memory", fault(), how_many);
  }
  /// Throws Code::checkpoint where lines could not be written to the last.
  void check_end() const {
    KF_CHECK(!is_on(), Code::checkpoint, "{}; {} {} are not in the file{}", fault(), waiting_.size(), words_,
             waiting_.empty() ? "" : ", but in the last checkpoint: when it can be written, the same command adds them");
  }

 private:
  void failed(const std::exception& e, const std::string& meanwhile) { outage_.failed(e.what(), meanwhile); }
  std::string meanwhile() const { return format("its {} wait in memory until it can be written", words_); }

  fs::path path_;
  const char* words_;
  std::deque<Line> waiting_;
  std::optional<std::int64_t> cut_;
  Outage outage_;
};

}  // namespace kf
