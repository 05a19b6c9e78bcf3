#pragma once
// One of the processes that `kf-host --nproc N` starts, and what it writes.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/child.h"
#include "core/descriptor.h"

namespace kf {

class RankProcess {
 public:
  /// What becomes of the lines that the process writes.
  enum class Output {
    own,       ///< it writes where this process does
    prefixed,  ///< each line appears on standard error behind "[rank 1] "
    kept       ///< the last ones are kept, for `tell`
  };

  /// `what`: it is, in front of its lines.
  RankProcess(std::int64_t rank, const std::vector<std::string>& argv, const std::map<std::string, std::string>& environment, Output output,
              const char* what = "rank");

  /// From now on an error that other processes of `said`, which outlives this, have in the same words but for their number is shown once:
  /// a place that no rank of a machine can reach.
  void tell_once(std::set<std::string>& said) { said_ = &said; }

  Child& child() { return *child_; }
  std::int64_t rank() const { return rank_; }
  /// To wait with poll(): readable where the process has written; -1 where nothing is read.
  int output() const { return read_.get(); }
  /// Reads what there is, and whether there was something; at the end closes the pipe.
  bool forward();
  /// Of a process that has ended: what it has left. Its own children may hold the other end for ever; nobody waits for them.
  void finish();
  /// Shows the lines that were kept.
  void tell();
  /// The last line that it wrote, without what a terminal hides; "" where it goes its own way.
  const std::string& last_line() const { return last_; }

 private:
  void close();
  void take(const std::string& line);
  void print(const std::string& line) const;
  bool is_told(const std::string& line);

  std::int64_t rank_;
  Output output_;
  const char* what_;
  std::unique_ptr<Child> child_;
  Descriptor read_;
  std::string text_;  // of a line that has not ended
  std::string last_;
  std::deque<std::string> kept_;
  std::set<std::string>* said_ = nullptr;
  bool passes_over_ = false;  // what belongs to a line that was not shown
};

}  // namespace kf
